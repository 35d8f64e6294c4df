"""Make the live pair's model: a tiny random Qwen3 with a tokenizer trained on text that every Python has.

Runs in the engine environment: ``build/pair/bin/python live/model.py build/pair-model``.

What the model writes must survive the way back through text: a client resends the answer as text, and if that gave
other tokens than D generated, the KV held on D would belong to another prompt. So the output layer can only choose
words that are one token each, whatever stands beside them.
"""

from __future__ import annotations

import argparse
import json
import pydoc_data.topics
import random
import sys
from pathlib import Path

VOCABULARY = 2_048
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MAX_LENGTH = 8_192
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make(target: Path) -> None:
    """Write model, tokenizer and chat template to ``target``, unless they are there."""
    if (target / "done").exists():
        return
    target.mkdir(parents=True, exist_ok=True)
    words = _make_tokenizer(target)
    _make_weights(target, words)
    (target / "done").write_text("")


def _make_tokenizer(target: Path) -> list[int]:
    """Train and save the tokenizer; return the ids of the words the model may write."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(list(pydoc_data.topics.topics.values()), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(target)
    words = [i for i in range(tokenizer.get_vocab_size()) if _is_word(tokenizer.decode([i])) and _stable(tokenizer, i)]
    chosen = random.Random(0).choices(words, k=2_000)
    if tokenizer.encode("assistant\n" + tokenizer.decode(chosen) + "<|im_end|>").ids[-2_001:-1] != chosen:
        raise SystemExit("error: the trained tokenizer does not give a text of its own words back as the same tokens")
    return words


def _is_word(text: str) -> bool:
    return len(text) > 2 and text[0] == " " and text[1:].isascii() and text[1:].isalpha()


def _stable(tokenizer: object, token: int) -> bool:
    text = tokenizer.decode([token])  # type: ignore[attr-defined]
    return bool(tokenizer.encode(text).ids == [token])  # type: ignore[attr-defined]


def _make_weights(target: Path, words: list[int]) -> None:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=False,
        eos_token_id=SPECIAL.index("<|im_end|>"),
        pad_token_id=SPECIAL.index("<|endoftext|>"),
        dtype="bfloat16",
    )
    model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    allowed = torch.zeros(VOCABULARY, dtype=torch.bool)
    allowed[words] = True
    with torch.no_grad():
        # A zero row gives logit 0; of several hundred random ones some are always above it.
        model.lm_head.weight.normal_(std=0.5)
        model.lm_head.weight[~allowed] = 0
    model.save_pretrained(target)
    (target / "generation_config.json").write_text(json.dumps({"eos_token_id": config.eos_token_id}))


def main() -> int:
    """Make the model in the folder named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", type=Path)
    make(parser.parse_args().target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
