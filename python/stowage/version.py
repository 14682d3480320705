"""The version that recorded files name as their writer."""

VERSION = "0.1.0"
