import type { RotaryEmbedding, RotaryScaling } from "../rotary-types.js";
import type { ConfigFields } from "./config-json.js";

/**
 * The rotary positions of a config.json: rope_theta with rope_scaling, or rope_parameters, which newer files have for both (for
 * each kind of layer where they differ: `kind`).
 */
export function readRotary(config: ConfigFields, headDim: number, base: number, kind?: string): RotaryEmbedding {
  const parameters = config.inner("rope_parameters");
  const own = (kind && parameters?.inner(kind)) || parameters;
  const scaling = own ?? config.inner("rope_scaling");
  const share = (own?.has("partial_rotary_factor") ? own : config).positive("partial_rotary_factor", 1);
  const dims = 2 * Math.floor((headDim * share) / 2);
  const theta = (own?.has("rope_theta") ? own : config).positive("rope_theta", base);
  const read = scaling && readScaling(scaling, config);
  return { dims, base: theta, interleaved: false, ...(read && { scaling: read }) };
}

function readScaling(scaling: ConfigFields, config: ConfigFields): RotaryScaling | undefined {
  const field = scaling.has("rope_type") ? "rope_type" : "type";
  const type = scaling.text(field, "default");
  if (type === "default") return undefined;
  const factor = type === "linear" || type === "llama3" || type === "yarn" ? scaling.positive("factor") : 1;
  const context = () => config.size("max_position_embeddings");
  const optional = <Name extends string>(name: Name, from: string) =>
    (scaling.has(from) ? { [name]: scaling.positive(from) } : {}) as { [Key in Name]?: number };
  if (type === "linear") return { type, factor };
  if (type === "llama3") {
    return {
      type,
      factor,
      originalLength: scaling.positive("original_max_position_embeddings"),
      ...optional("lowFrequencyFactor", "low_freq_factor"),
      ...optional("highFrequencyFactor", "high_freq_factor"),
    };
  }
  if (type === "yarn") {
    if (scaling.raw("truncate") === false) scaling.unsupported("truncate", "yarn's limits are whole dimensions");
    const originalLength = scaling.has("original_max_position_embeddings")
      ? scaling.positive("original_max_position_embeddings")
      : context();
    const lengths = { ...optional("betaFast", "beta_fast"), ...optional("betaSlow", "beta_slow") };
    return { type, factor, originalLength, ...lengths, ...yarnAttention(scaling, factor) };
  }
  return scaling.unsupported(field, "there are default, linear, llama3 and yarn");
}

/** attention_factor, or the quotient of the two that mscale and mscale_all_dim give. */
function yarnAttention(scaling: ConfigFields, factor: number): { attentionFactor?: number } {
  if (scaling.has("attention_factor")) return { attentionFactor: scaling.positive("attention_factor") };
  if (!scaling.has("mscale") || !scaling.has("mscale_all_dim")) return {};
  const grown = (scale: number) => (factor <= 1 ? 1 : 0.1 * scale * Math.log(factor) + 1);
  return { attentionFactor: grown(scaling.positive("mscale")) / grown(scaling.positive("mscale_all_dim")) };
}
