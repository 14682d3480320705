"""Writes the Keras models that the tests read, and what Keras' summary() says of them.

    KERAS_BACKEND=torch python3 tests/keras/make_models.py

Keras 3.15.0. For each model NAME.json is `model.to_json()`, and totals.csv has a line of trainable and
non-trainable parameters, as summary() counts them.
"""

import csv
import json
import pathlib

import keras
from keras import layers as L

FOLDER = pathlib.Path(__file__).parent


def cnn():
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            L.Conv2D(32, 3, padding="same", activation="relu"),
            L.Conv2D(32, 3, padding="same", use_bias=False),
            L.BatchNormalization(),
            L.Activation("relu"),
            L.MaxPooling2D(),
            L.Dropout(0.25),
            L.SeparableConv2D(64, 3, strides=2, padding="same"),
            L.BatchNormalization(scale=False),
            L.ReLU(6.0),
            L.DepthwiseConv2D(3, padding="same"),
            L.GlobalAveragePooling2D(),
            L.Dense(128, activation="relu"),
            L.Dropout(0.5),
            L.Dense(10, activation="softmax"),
        ],
        name="cnn",
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


def residual():
    image = keras.Input((64, 64, 3), name="image")
    x = L.ZeroPadding2D(3)(image)
    x = L.Conv2D(16, 7, strides=2, name="stem")(x)
    for i in range(2):
        y = L.LayerNormalization(name=f"norm_{i}")(x)
        y = L.Dense(64, activation="gelu", name=f"wide_{i}")(y)
        y = L.Dense(16, name=f"narrow_{i}")(y)
        x = L.Add()([x, y])
    x = L.Concatenate()([L.MaxPooling2D(3, 2, "same")(x), L.AveragePooling2D(3, 2, "same")(x)])
    x = L.Cropping2D(((1, 0), (0, 1)))(x)
    x = L.UpSampling2D(2, interpolation="bilinear")(x)
    x = L.GroupNormalization(8)(x)
    x = L.PReLU(shared_axes=[1, 2])(x)
    x = L.Flatten()(x)
    model = keras.Model(image, L.Dense(5)(x), name="residual")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def autoencoder():
    image = keras.Input((28, 28, 1))
    x = L.Conv2D(16, 3, strides=2, padding="same", activation="relu")(image)
    x = L.Conv2D(32, 3, strides=2, padding="same", activation="relu")(x)
    x = L.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu")(x)
    x = L.Conv2DTranspose(16, 4, strides=2, padding="same", activation="leaky_relu")(x)
    model = keras.Model(image, L.Conv2D(1, 3, padding="same", activation="sigmoid")(x), name="autoencoder")
    model.compile("rmsprop", "binary_crossentropy")
    return model


def sequence():
    tokens = keras.Input((40,), dtype="int32", name="tokens")
    x = L.Embedding(1000, 32)(tokens)
    x = L.SpatialDropout1D(0.1)(x)
    x = L.Conv1D(48, 5, padding="causal", activation="relu")(x)
    x = L.MaxPooling1D(2)(x)
    x = L.Bidirectional(L.LSTM(24, return_sequences=True))(x)
    x = L.GRU(20, return_sequences=True)(x)
    x = L.SimpleRNN(16, return_sequences=True)(x)
    x = L.TimeDistributed(L.Dense(12, activation="tanh"))(x)
    x = L.LSTM(8)(x)
    model = keras.Model(tokens, L.Dense(1, activation="sigmoid")(x), name="sequence")
    model.compile("adamw", "binary_crossentropy")
    return model


def transformer():
    tokens = keras.Input((64,), dtype="int32")
    x = L.Embedding(500, 48)(tokens)
    for _ in range(2):
        y = L.MultiHeadAttention(4, 12, dropout=0.1)(x, x, use_causal_mask=True)
        x = L.LayerNormalization()(L.Add()([x, y]))
        y = L.Dense(48)(L.Dense(96, activation="relu")(x))
        x = L.LayerNormalization()(L.Add()([x, y]))
    model = keras.Model(tokens, L.Dense(500)(x), name="transformer")
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def nested():
    backbone = keras.Sequential(
        [keras.Input((16, 16, 3)), L.Conv2D(8, 3), L.BatchNormalization(), L.GlobalMaxPooling2D()],
        name="backbone")
    shared = L.Dense(6, activation="relu", name="shared")
    a, b = keras.Input((16, 16, 3), name="a"), keras.Input((16, 16, 3), name="b")
    x, y = shared(backbone(a)), shared(backbone(b))
    x = L.Concatenate()([L.Subtract()([x, y]), L.Multiply()([x, y]), L.Average()([x, y])])
    model = keras.Model([a, b], L.Dense(1)(x), name="nested")
    backbone.trainable = False
    model.compile("sgd", "mse")
    return model


def shapes():
    x = keras.Input((12,))
    y = L.Reshape((3, 4))(x)
    y = L.Permute((2, 1))(y)
    y = L.Dot((2, 2))([y, y])
    z = L.RepeatVector(4)(x)
    z = L.Rescaling(0.5, 1)(z)
    y = L.Concatenate(axis=-1)([y, z])
    y = L.UnitNormalization()(y)
    y = L.Attention()([y, y])
    y = L.Softmax()(y)
    model = keras.Model(x, L.Dense(3)(L.Flatten()(y)), name="shapes")
    return model


def augmented():
    """Augmentation, preprocessing, and what preprocess_input() writes into a model."""
    image = keras.Input((64, 64, 3), name="image")
    x = L.RandomFlip("horizontal")(image)
    x = L.RandomRotation(0.1)(x)
    x = L.RandomZoom(0.2)(x)
    x = L.RandomTranslation(0.1, 0.1)(x)
    x = L.RandomContrast(0.2)(x)
    x = L.RandomBrightness(0.2)(x)
    x = L.RandomCrop(56, 56)(x)
    x = L.Rescaling(1 / 127.5, offset=-1)(x)
    x = L.Resizing(96, 96)(x)
    x = L.CenterCrop(80, 80)(x)
    x = L.Normalization(mean=[0.5, 0.5, 0.5], variance=[1, 1, 1])(x)
    x = keras.applications.mobilenet_v2.preprocess_input(x)
    x = keras.applications.resnet50.preprocess_input(x)
    x = 2.0 * x[:, 8:-8, 8:72, ::-1] - 1.0
    x = L.Conv2D(8, 3, activation="relu")(x)
    x = L.GlobalAveragePooling2D()(x)
    return keras.Model(image, L.Dense(5)(x), name="augmented")


def applications():
    """Of keras.applications those whose JSON is small."""
    yield "resnet50", keras.applications.ResNet50(weights=None)
    yield "mobilenet_v2", keras.applications.MobileNetV2(weights=None)


def main():
    rows = []
    models = []
    for make in (cnn, residual, autoencoder, sequence, transformer, nested, shapes, augmented):
        keras.backend.clear_session()  # names are counted anew
        model = make()
        models.append((model.name, model))
    for name, model in models + list(applications()):
        (FOLDER / f"{name}.json").write_text(json.dumps(json.loads(model.to_json()), indent=None) + "\n")
        count = lambda weights: sum(int(keras.ops.size(w)) for w in weights)
        rows.append([name, count(model.trainable_weights), count(model.non_trainable_weights)])
    with open(FOLDER / "totals.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "trainable", "non_trainable"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
