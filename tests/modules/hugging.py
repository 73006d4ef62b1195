"""Small models of the transformers package, whose results are dataclasses. Weights are drawn."""

import torch
import transformers
from torch import nn

_SMALL = dict(hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128)
_IDS = dict(vocab_size=100, max_position_embeddings=64)


def _ids(rows=2, cols=24, high=100):
    return torch.randint(3, high, (rows, cols))


class WholeBert(nn.Module):
    """An encoder with its mask, whose result has a pooled part and two fields of None."""

    def __init__(self):
        super().__init__()
        self.model = transformers.BertModel(transformers.BertConfig(**_SMALL, **_IDS))

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask)

    def example_input_array():
        mask = torch.ones(2, 24, dtype=torch.long)
        mask[1, 17:] = 0
        return [_ids(), mask]


class MaskedWords(nn.Module):
    """A masked language model with its loss."""

    def __init__(self):
        super().__init__()
        self.model = transformers.DistilBertForMaskedLM(transformers.DistilBertConfig(
            vocab_size=100, dim=64, n_layers=1, n_heads=4, hidden_dim=128, max_position_embeddings=64))

    def forward(self, input_ids, labels):
        return self.model(input_ids=input_ids, labels=labels)

    def example_input_array():
        labels = torch.full((2, 24), -100)
        labels[:, 5:9] = torch.randint(0, 100, (2, 4))
        return [_ids(), labels]


class NextTokens(nn.Module):
    """GPT-2 without a cache."""

    def __init__(self):
        super().__init__()
        self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=100, n_positions=64, n_embd=64, n_layer=1, n_head=4))

    def forward(self, input_ids):
        return self.model(input_ids, use_cache=False).logits

    def example_input_array():
        return [_ids()]


class NormedHeads(nn.Module):
    """A layer of Qwen3 in its model."""

    def __init__(self):
        super().__init__()
        self.model = transformers.Qwen3Model(transformers.Qwen3Config(
            **_SMALL, **_IDS, num_key_value_heads=2, head_dim=16))

    def forward(self, input_ids):
        return self.model(input_ids, use_cache=False)

    def example_input_array():
        return [_ids()]


class CappedTwice(nn.Module):
    """Gemma 2, with a window and capped logits."""

    def __init__(self):
        super().__init__()
        self.model = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
            **{**_SMALL, "num_hidden_layers": 2}, **_IDS, num_key_value_heads=2, head_dim=16,
            sliding_window=8, attn_implementation="eager"))

    def forward(self, input_ids):
        return self.model(input_ids, use_cache=False).logits

    def example_input_array():
        return [_ids()]


class RelativeBuckets(nn.Module):
    """T5's encoder."""

    def __init__(self):
        super().__init__()
        self.model = transformers.T5EncoderModel(transformers.T5Config(
            vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=1, num_heads=4))

    def forward(self, input_ids):
        return self.model(input_ids)

    def example_input_array():
        return [_ids()]


class Patches(nn.Module):
    """A vision transformer that classifies."""

    def __init__(self):
        super().__init__()
        self.model = transformers.ViTForImageClassification(transformers.ViTConfig(
            **_SMALL, image_size=32, patch_size=8, num_labels=10))

    def forward(self, pixel_values):
        return self.model(pixel_values)

    def example_input_array():
        return [torch.randn(2, 3, 32, 32)]


class Residuals(nn.Module):
    """A ResNet whose batch norms are folded by none."""

    def __init__(self):
        super().__init__()
        self.model = transformers.ResNetModel(transformers.ResNetConfig(
            embedding_size=16, hidden_sizes=[32, 64], depths=[1, 1], layer_type="basic"))

    def forward(self, pixel_values):
        return self.model(pixel_values)

    def example_input_array():
        return [torch.randn(2, 3, 64, 64)]


class ResponseNorm(nn.Module):
    """ConvNeXt V2 with global response normalization."""

    def __init__(self):
        super().__init__()
        self.model = transformers.ConvNextV2Model(transformers.ConvNextV2Config(
            hidden_sizes=[16, 32], depths=[1, 1], num_stages=2))

    def forward(self, pixel_values):
        return self.model(pixel_values)

    def example_input_array():
        return [torch.randn(2, 3, 64, 64)]


class Segments(nn.Module):
    """SegFormer: overlapping patches, reduced keys, an MLP that decodes."""

    def __init__(self):
        super().__init__()
        self.model = transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig(
            num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2], hidden_sizes=[16, 32], patch_sizes=[7, 3],
            strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=32,
            num_labels=5))

    def forward(self, pixel_values):
        return self.model(pixel_values)

    def example_input_array():
        return [torch.randn(2, 3, 64, 64)]


class TextTower(nn.Module):
    """CLIP's text model, which finds the end of a text."""

    def __init__(self):
        super().__init__()
        self.model = transformers.CLIPTextModel(
            transformers.CLIPTextConfig(**_SMALL, **_IDS, eos_token_id=99))

    def forward(self, input_ids):
        return self.model(input_ids)

    def example_input_array():
        ids = _ids(high=99)
        ids[:, -1] = 99
        return [ids]


class Listener(nn.Module):
    """Whisper's encoder of a spectrogram."""

    def __init__(self):
        super().__init__()
        config = transformers.WhisperConfig(
            d_model=64, encoder_layers=1, encoder_attention_heads=4, encoder_ffn_dim=128, decoder_layers=1,
            decoder_attention_heads=4, num_mel_bins=16, max_source_positions=50, vocab_size=100,
            pad_token_id=0)
        self.model = transformers.WhisperModel(config).encoder

    def forward(self, input_features):
        return self.model(input_features)

    def example_input_array():
        return [torch.randn(2, 16, 100)]


class Experts(nn.Module):
    """Mixtral with four experts."""

    def __init__(self):
        super().__init__()
        self.model = transformers.MixtralModel(transformers.MixtralConfig(
            **_SMALL, **_IDS, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2))

    def forward(self, input_ids):
        return self.model(input_ids, use_cache=False)

    def example_input_array():
        return [_ids()]
