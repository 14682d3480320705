"""The steps of fine_tuning.py's cases, and what is read of each. One case in this process.

Phases are snapshots as in one_job.py: `context`, `loaded`, then `first_step` and `steady`; of a
served cache `prefill` and `decode`. Peaks are reset at the start of each.
"""

from __future__ import annotations

import contextlib

import torch

import one_job
import tuning_cases
import tuning_models
from tuning_cases import Case

_STEPS = 2  # behind the first one
_LAST_TOKENS = 3  # decoded one by one, as many as a context lacks after its prompt


def autocast(case: Case, device: str):
    low = case.precision == "amp-bf16"
    return torch.autocast(device, dtype=torch.bfloat16) if low else contextlib.nullcontext()


class Trainer:
    """A flat training script: the output and the loss live until the next step's replace them."""

    def __init__(self, case: Case, network, device: str):
        self.case, self.network, self.device = case, network, device
        trained = [weight for weight in network.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=1e-4)
        self.output = self.loss = None

    def forward(self, inputs: dict):
        """(output, loss)."""
        if self.case.from_hub():
            output = self.network(**inputs)
            return output, output.loss
        output = self.network(inputs["pixel_values"])
        return output, torch.nn.functional.cross_entropy(output, inputs["labels"])

    def step(self, **inputs):
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(self.case, self.device):
            self.output, self.loss = self.forward(inputs)
        self.loss.backward()
        self.optimizer.step()
        return self.loss


def train(case: Case, network, meter, recorder) -> None:
    inputs = tuning_models.batch(case, network, meter.device)
    trainer = Trainer(case, network, meter.device)
    meter.reset_peaks()
    trainer.step(**inputs)
    recorder.phase("first_step", meter.snapshot())
    meter.reset_peaks()
    for _ in range(_STEPS):
        trainer.step(**inputs)
    recorder.phase("steady", meter.snapshot())


def infer(case: Case, network, meter, recorder) -> None:
    """Whole sequences or images, without a cache."""
    inputs = tuning_models.batch(case, network, meter.device)
    arguments = () if case.from_hub() else (inputs.pop("pixel_values"),)
    output = None
    meter.reset_peaks()
    with torch.inference_mode(), autocast(case, meter.device):
        for phase, count in (("first_step", 1), ("steady", _STEPS)):
            for _ in range(count):
                output = network(*arguments, **inputs)
            recorder.phase(phase, meter.snapshot())
            meter.reset_peaks()
    del output


class Server:
    """Users whose contexts are cached. `encoded` is what a decoder keeps of its encoder."""

    def __init__(self, case: Case, network, device: str):
        self.case, self.network, self.device = case, network, device
        self.kind = network.config.model_type
        self.cache = self.encoded = self.source = self.output = None

    def tokens(self, length: int):
        return torch.randint(0, 100, (self.case.batch, length), device=self.device)

    def new_cache(self):
        import transformers
        config = self.network.config
        def one():
            if self.case.cache == "static":
                return transformers.StaticCache(config=config, max_cache_len=self.case.seq)
            return transformers.DynamicCache(config=config)
        if self.kind in tuning_models.ENCODER_DECODERS:
            return transformers.EncoderDecoderCache(one(), transformers.DynamicCache())
        return one()

    def start(self) -> None:
        """Nothing cached; the output of an earlier pass is gone."""
        self.cache = self.encoded = self.source = self.output = None
        self.cache = self.new_cache()

    def encode(self) -> None:
        if self.kind not in tuning_models.ENCODER_DECODERS:
            return
        self.source = (tuning_models.spectrogram(self.case, self.network.config, self.device)
                       if self.kind == "whisper" else self.tokens(self.case.encoder_seq))
        self.encoded = self.network.get_encoder()(self.source)

    def run(self, length: int) -> None:
        """A pass over so many new tokens of each user; its logits live until the next one's."""
        tokens = self.tokens(length)
        if self.encoded is not None:
            result = self.network(encoder_outputs=self.encoded, decoder_input_ids=tokens,
                                  past_key_values=self.cache, use_cache=True)
        else:
            result = self.network(input_ids=tokens, past_key_values=self.cache, use_cache=True,
                                  logits_to_keep=1)
        self.output = result.logits

    def prefill(self) -> None:
        """Prompts that fill the contexts; of an encoder-decoder the encoder and one token."""
        self.start()
        self.encode()
        self.run(1 if self.encoded is not None else self.case.seq)

    def fill(self) -> None:
        """Contexts that are full but for the last token."""
        self.start()
        self.encode()
        self.run(self.case.seq - _LAST_TOKENS)
        for _ in range(_LAST_TOKENS - 1):
            self.run(1)

    def cache_bytes(self) -> int:
        """Of all keys and values; tensors of no elements are there before a layer is first used."""
        parts = ([self.cache.self_attention_cache, self.cache.cross_attention_cache]
                 if hasattr(self.cache, "cross_attention_cache") else [self.cache])
        return sum(tensor.nbytes for part in parts for layer in part.layers
                   for tensor in (layer.keys, layer.values) if tensor is not None)


def serve(case: Case, network, meter, recorder) -> None:
    server = Server(case, network, meter.device)
    with torch.no_grad():
        server.prefill()
        meter.reset_peaks()
        server.prefill()
        recorder.phase("prefill", meter.snapshot())
        recorder.save(prefill_cache_bytes=server.cache_bytes())
        server.fill()
        if meter.device == "cuda":
            torch.cuda.empty_cache()  # what prefill left cached is no part of a token's step
        meter.reset_peaks()
        server.run(1)
        recorder.phase("decode", meter.snapshot())
        recorder.save(cache_bytes=server.cache_bytes())


def _run(case: Case, small: bool, meter, recorder) -> None:
    torch.manual_seed(0)
    if meter.device == "cpu":
        torch.set_num_threads(1)  # a dry run has other processes beside it
    recorder.phase("context", meter.context())
    network = tuning_models.build(case, meter.device, small)
    if meter.device == "cuda":
        torch.cuda.empty_cache()  # what making the weights left cached
    weights = list(network.parameters())
    recorder.save(parameters=sum(weight.numel() for weight in weights),
                  parameter_bytes=sum(weight.nbytes for weight in weights),
                  trained=sum(weight.numel() for weight in weights if weight.requires_grad))
    recorder.phase("loaded", meter.snapshot())
    del weights
    run = train if case.training() else serve if case.cache else infer
    run(case, network, meter, recorder)


def run(spec: dict, path: str) -> None:
    """Runs the case of that key and writes its record to `path`, whatever happens short of being killed."""
    import meter as meters
    case = tuning_cases.find(spec["key"])
    recorder = one_job.Recorder(path, {"key": case.key(), "status": "running", "phases": {}})
    dry = spec["device"] == "cpu"
    meter = None
    try:
        meter = meters.DryMeter() if dry else meters.CudaMeter(spec["uuid"])
        _run(tuning_models.shrunken(case) if dry else case, dry, meter, recorder)
        recorder.save(status="ok")
    except Exception as error:
        memory = one_job.out_of_memory(error)
        if memory:
            recorder.save(status="oom", oom=memory)
        else:
            recorder.save(status="failed", error=one_job.failure(error))
