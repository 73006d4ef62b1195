"""More models of the transformers package, as their users call them. Weights are drawn."""

import torch
import transformers as tf
from torch import nn

_SMALL = dict(hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128,
              vocab_size=100)


def _ids(rows=2, cols=24, high=100):
    return torch.randint(3, high, (rows, cols))


class DecoderLayer(nn.Module):
    """One layer of Llama with grouped keys, whose rotations come as a pair."""

    def __init__(self):
        super().__init__()
        config = tf.LlamaConfig(num_key_value_heads=2, attn_implementation="sdpa", **_SMALL)
        self.layer = tf.models.llama.modeling_llama.LlamaDecoderLayer(config, 0)

    def forward(self, hidden_states, position_embeddings):
        return self.layer(hidden_states, position_embeddings=position_embeddings)

    def example_input_array():
        angle = torch.arange(32)[None, :, None] * torch.rand(1, 1, 16)
        return [torch.randn(2, 32, 64), (angle.cos().expand(2, -1, -1).contiguous(),
                                         angle.sin().expand(2, -1, -1).contiguous())]


class CausalLoss(nn.Module):
    """Mistral with its own shifted loss."""

    def __init__(self):
        super().__init__()
        self.model = tf.MistralForCausalLM(tf.MistralConfig(
            num_key_value_heads=2, sliding_window=8, use_cache=False, **_SMALL))

    def forward(self, input_ids, labels):
        return self.model(input_ids=input_ids, labels=labels)

    def example_input_array():
        labels = _ids()
        labels[:, :6] = -100
        return [_ids(), labels]


class StateSpace(nn.Module):
    """Mamba without its kernels: the scan of the slow path."""

    def __init__(self):
        super().__init__()
        self.model = tf.MambaModel(tf.MambaConfig(
            vocab_size=100, hidden_size=32, state_size=8, num_hidden_layers=1, use_cache=False))

    def forward(self, input_ids):
        return self.model(input_ids).last_hidden_state

    def example_input_array():
        return [_ids(2, 12)]


class Translator(nn.Module):
    """T5 with encoder and decoder."""

    def __init__(self):
        super().__init__()
        self.model = tf.T5Model(tf.T5Config(
            vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=1, num_heads=4, use_cache=False))

    def forward(self, input_ids, decoder_input_ids):
        return self.model(input_ids=input_ids, decoder_input_ids=decoder_input_ids).last_hidden_state

    def example_input_array():
        return [_ids(), _ids(2, 10)]


class Summaries(nn.Module):
    """BART, whose decoder has a mask of the source."""

    def __init__(self):
        super().__init__()
        self.model = tf.BartModel(tf.BartConfig(
            vocab_size=100, d_model=64, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
            max_position_embeddings=64, use_cache=False))

    def forward(self, input_ids, attention_mask, decoder_input_ids):
        return self.model(input_ids, attention_mask=attention_mask,
                          decoder_input_ids=decoder_input_ids).last_hidden_state

    def example_input_array():
        mask = torch.ones(2, 24, dtype=torch.long)
        mask[1, 19:] = 0
        return [_ids(), mask, _ids(2, 10)]


class ImageText(nn.Module):
    """CLIP whole: logits of images by texts, with a learnt temperature."""

    def __init__(self):
        super().__init__()
        text = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                    vocab_size=100, max_position_embeddings=32, eos_token_id=2)
        vision = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                      image_size=32, patch_size=8)
        self.model = tf.CLIPModel(tf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))

    def forward(self, input_ids, pixel_values):
        out = self.model(input_ids=input_ids, pixel_values=pixel_values)
        return out.logits_per_image, out.image_embeds

    def example_input_array():
        ids = _ids(3, 12)
        ids[:, -1] = 2
        return [ids, torch.randn(3, 3, 32, 32)]


class Windowed(nn.Module):
    """Swin whole: two stages, shifts, merged patches."""

    def __init__(self):
        super().__init__()
        self.model = tf.SwinModel(tf.SwinConfig(
            image_size=32, patch_size=4, embed_dim=32, depths=[2, 1], num_heads=[2, 4], window_size=4))

    def forward(self, pixel_values):
        return self.model(pixel_values).pooler_output

    def example_input_array():
        return [torch.randn(2, 3, 32, 32)]


class DistanceBias(nn.Module):
    """Bloom: a bias by the distance, fused queries, keys and values."""

    def __init__(self):
        super().__init__()
        self.model = tf.BloomModel(tf.BloomConfig(
            vocab_size=100, hidden_size=64, n_layer=1, n_head=4, use_cache=False))

    def forward(self, input_ids):
        return self.model(input_ids).last_hidden_state

    def example_input_array():
        return [_ids()]


class PartlyRotated(nn.Module):
    """GPT-NeoX: a quarter of each head is rotated, and a parallel residual."""

    def __init__(self):
        super().__init__()
        self.model = tf.GPTNeoXModel(tf.GPTNeoXConfig(
            max_position_embeddings=64, use_cache=False, **_SMALL))

    def forward(self, input_ids):
        return self.model(input_ids).last_hidden_state

    def example_input_array():
        return [_ids()]


class SpeechFeatures(nn.Module):
    """Wav2Vec2: convolutions over a wave, a weight-normed positional convolution, an encoder."""

    def __init__(self):
        super().__init__()
        self.model = tf.Wav2Vec2Model(tf.Wav2Vec2Config(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
            conv_dim=(16, 16), conv_kernel=(10, 3), conv_stride=(5, 2), num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4, num_feat_extract_layers=2))

    def forward(self, input_values):
        return self.model(input_values).last_hidden_state

    def example_input_array():
        return [torch.randn(2, 400)]


class Vocoder(nn.Module):
    """HiFi-GAN: a spectrogram becomes a wave."""

    def __init__(self):
        super().__init__()
        self.model = tf.SpeechT5HifiGan(tf.SpeechT5HifiGanConfig(
            model_in_dim=16, upsample_initial_channel=32, upsample_rates=[4, 2],
            upsample_kernel_sizes=[8, 4], resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1, 3]]))

    def forward(self, spectrogram):
        return self.model(spectrogram)

    def example_input_array():
        return [torch.randn(2, 20, 16)]


class Clips(nn.Module):
    """VideoMAE: tubes of a clip by a convolution in three dimensions."""

    def __init__(self):
        super().__init__()
        self.model = tf.VideoMAEModel(tf.VideoMAEConfig(
            image_size=16, patch_size=8, num_frames=4, tubelet_size=2, hidden_size=32,
            num_hidden_layers=1, num_attention_heads=2, intermediate_size=64))

    def forward(self, pixel_values):
        return self.model(pixel_values).last_hidden_state

    def example_input_array():
        return [torch.randn(2, 4, 3, 16, 16)]


class Inverted2(nn.Module):
    """MobileNetV2 whole, in evaluation."""

    def __init__(self):
        super().__init__()
        self.model = tf.MobileNetV2Model(tf.MobileNetV2Config(
            image_size=32, depth_multiplier=0.25, depth_divisible_by=4, min_depth=4))

    def forward(self, pixel_values):
        return self.model(pixel_values).pooler_output

    def example_input_array():
        return [torch.randn(2, 3, 32, 32)]


class Squeezed(nn.Module):
    """RegNet's stage with squeeze and excitation and grouped convolutions."""

    def __init__(self):
        super().__init__()
        self.model = tf.RegNetModel(tf.RegNetConfig(
            embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], groups_width=8, layer_type="y"))

    def forward(self, pixel_values):
        return self.model(pixel_values).last_hidden_state

    def example_input_array():
        return [torch.randn(2, 3, 32, 32)]


class Registers(nn.Module):
    """DINOv2 with register tokens and scaled residuals."""

    def __init__(self):
        super().__init__()
        self.model = tf.Dinov2WithRegistersModel(tf.Dinov2WithRegistersConfig(
            image_size=28, patch_size=7, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
            mlp_ratio=2, num_register_tokens=4))

    def forward(self, pixel_values):
        return self.model(pixel_values).last_hidden_state

    def example_input_array():
        return [torch.randn(2, 3, 28, 28)]


class Forecast(nn.Module):
    """PatchTST: a series is scaled, cut into patches and forecast."""

    def __init__(self):
        super().__init__()
        self.model = tf.PatchTSTForPrediction(tf.PatchTSTConfig(
            num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, d_model=32,
            num_attention_heads=2, num_hidden_layers=1, ffn_dim=64, prediction_length=6))

    def forward(self, past_values):
        return self.model(past_values=past_values).prediction_outputs

    def example_input_array():
        return [torch.randn(4, 32, 3)]


class Codec(nn.Module):
    """DAC's encoder and residual quantizer of a wave: nearest codes, Snake activations."""

    def __init__(self):
        super().__init__()
        self.model = tf.DacModel(tf.DacConfig(
            encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=32, n_codebooks=2,
            codebook_size=32, codebook_dim=4, hidden_size=32))

    def forward(self, input_values):
        return self.model(input_values).audio_values

    def example_input_array():
        return [torch.randn(2, 1, 128)]
