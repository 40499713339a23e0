/** A trained model as the folder that Hugging Face's libraries and loadDecoder read. */
import type { DecoderSettings } from "../model/settings.js";
import { slotShape } from "../model/slots.js";
import { type Destination, fullName, isVector, type WantedTensor, wantedTensors } from "../model/tensor-names.js";
import type { Place } from "./checkpoint.js";
import { configJson } from "./model-files.js";
import { writeSafetensors } from "./safetensors-writer.js";
import type { MadeTokenizer } from "./tokenizer-files.js";
import type { FullTrainerConfig } from "./types.js";

export interface TrainedModel {
  readonly config: FullTrainerConfig;
  readonly settings: DecoderSettings;
  readonly tokenizer: MadeTokenizer;
  readonly read: (place: Place) => Float32Array;
}

export function exportFiles({ config, settings, tokenizer, read }: TrainedModel, dtype: "f16" | "f32"): File[] {
  const { family } = config.model;
  const tensors = Array.from(wantedTensors(family, settings), ([name, wanted]) => ({
    name: fullName(family, name),
    dims: wanted.dims,
    values: () => assemble(wanted, settings, read),
  }));
  const weights = writeSafetensors(tensors, dtype === "f16" ? "F16" : "F32", { format: "pt" });
  const json = configJson(config, settings.vocabSize, tokenizer.endId, dtype === "f16" ? "float16" : "float32");
  const ends = { bos_token_id: null, eos_token_id: tokenizer.endId ?? null };
  return [
    jsonFile("config.json", json),
    jsonFile("generation_config.json", { _from_model_config: true, ...ends }),
    new File([weights], "model.safetensors"),
    jsonFile("tokenizer.json", tokenizer.json),
    jsonFile("tokenizer_config.json", { ...tokenizer.config, model_max_length: settings.contextLength }),
  ];
}

const jsonFile = (name: string, content: object): File =>
  new File([`${JSON.stringify(content, undefined, 2)}\n`], name, { type: "application/json" });

/** The parts of a file's tensor side by side: the reverse of what loadDecoder does with it. */
function assemble(
  { dims, transposed, destinations }: WantedTensor,
  settings: DecoderSettings,
  read: TrainedModel["read"],
): Float32Array {
  const [rows, columns = 1] = dims as [number, number?];
  const whole = new Float32Array(rows * columns);
  const put = ({ slot, layer, from }: Destination) => {
    const part = read({ part: "weights", slot, layer });
    if (!transposed || isVector(slot)) {
      whole.set(part, from * columns);
      return;
    }
    const [outputs, inputs] = slotShape(settings, slot)!;
    for (let output = 0; output < outputs; output++)
      for (let input = 0; input < inputs; input++)
        whole[input * columns + from + output] = part[output * inputs + input]!;
  };
  destinations.forEach(put);
  return whole;
}
