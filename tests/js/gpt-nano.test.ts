/** M4: a trained model's intermediates: the layer with its weights gives its queries, keys, values, scores, weights and outputs. */
import { existsSync, readFileSync } from "node:fs";
import { test } from "@jest/globals";
import type { Lookback, MultiHeadAttention, Tensor } from "lookback";
import { holds, worst } from "./accuracy-check.ts";
import { foldHeads } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

interface Base64Array {
  shape: number[];
  data: string;
}

const folder = new URL("../../../shared/conformance/gpt-nano-sort/", import.meta.url);
const present = existsSync(new URL("gpt-nano-sort-model.json", folder));

if (!present) test.skip("M4: ../shared/conformance/gpt-nano-sort is not beside this checkout", () => {});
else {
  const read = (name: string): Record<string, Base64Array> => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
  const decode = ({ shape, data }: Base64Array): Tensor => {
    const bytes = Buffer.from(data, "base64");
    return { data: Float32Array.from({ length: bytes.length / 4 }, (_, n) => bytes.readFloatLE(n * 4)), dims: shape };
  };
  const model = read("gpt-nano-sort-model.json");
  const partials = read("gpt-nano-sort-t0-partials.json");
  const stored = (name: string) => decode(partials[name]!);
  const parameter = (name: string) => decode(model[`transformer.h.0.attn.${name}`]!);
  const close = () => 2e-6;
  const [embedDim, heads, length, batch] = [48, 3, 11, 3];
  const state = {
    in_proj_weight: parameter("c_attn.weight"),
    in_proj_bias: parameter("c_attn.bias"),
    "out_proj.weight": parameter("c_proj.weight"),
    "out_proj.bias": parameter("c_proj.bias"),
  };

  /** Runs `use` with a layer of these parameters. */
  function withLayer<T>(lb: Lookback, given: typeof state, use: (layer: MultiHeadAttention) => T): T {
    const layer = lb.multiHeadAttention({ embedDim, heads });
    try {
      layer.load(given);
      return use(layer);
    } finally {
      layer.dispose();
    }
  }

  /** Moves the query's rows of the packed projection to the place of the key's, and those to the query's. */
  function swapped({ data, dims }: Tensor): Tensor {
    const part = data.length / 3;
    const moved = data.slice();
    moved.set(data.subarray(0, part), part);
    moved.set(data.subarray(part, 2 * part), 0);
    return { data: moved, dims };
  }

  describeVariants((lb) => {
    test("M4: the layer's projections of the stored input are the stored keys and values, and queries", () => {
      const projected = (given: typeof state) =>
        withLayer(lb, given, (layer) => {
          const cache = layer.kvCache({ batch, capacity: length });
          layer.forward(stored("ln1"), { cache, causal: true });
          const { keys, values } = cache.read();
          cache.dispose();
          return { keys: keys.data, values: values.data };
        });
      const { keys, values } = projected(state);
      holds(worst(keys, stored("k").data, close), "keys");
      holds(worst(values, stored("v").data, close), "values");
      // A cache shows keys: with both projections swapped they are the queries.
      const other = {
        ...state,
        in_proj_weight: swapped(state.in_proj_weight),
        in_proj_bias: swapped(state.in_proj_bias),
      };
      holds(worst(projected(other).keys, stored("q").data, close), "queries");
    });

    test("M4, R12: the layer gives the stored masked scores, softmax and projected output", () => {
      withLayer(lb, state, (layer) => {
        const call = (weights: "masked" | "softmax") => layer.forward(stored("ln1"), { causal: true, weights });
        holds(worst(call("masked").weights.data, stored("att").data, close), "masked scores");
        holds(worst(call("softmax").weights.data, stored("attSm").data, close), "softmax");
        holds(worst(call("softmax").output.data, stored("yProj").data, close), "projected output");
      });
    });

    test("M4, R16: token by token the layer gives the same projected output", () => {
      withLayer(lb, state, (layer) => {
        const input = stored("ln1");
        const cache = layer.kvCache({ batch, capacity: length });
        const found = new Float32Array(input.data.length);
        for (let i = 0; i < length; i++) {
          const token = (b: number) =>
            input.data.subarray((b * length + i) * embedDim, (b * length + i + 1) * embedDim);
          const x = new Float32Array(batch * embedDim);
          for (let b = 0; b < batch; b++) x.set(token(b), b * embedDim);
          const { output } = layer.step({ data: x, dims: [batch, 1, embedDim] }, cache);
          for (let b = 0; b < batch; b++)
            found.set(output.data.subarray(b * embedDim, (b + 1) * embedDim), (b * length + i) * embedDim);
        }
        cache.dispose();
        holds(worst(found, stored("yProj").data, close), "projected output");
      });
    });

    test("R6, R12: its stored queries, keys and values give its stored masked scores, softmax and output", () => {
      const [q, k, v] = [stored("q"), stored("k"), stored("v")];
      const call = (weights: "masked" | "softmax") => lb.attention(q, k, v, { causal: true, weights });
      holds(worst(call("masked").weights.data, stored("att").data, close), "masked scores");
      holds(worst(call("softmax").weights.data, stored("attSm").data, close), "softmax");
      const output = foldHeads(call("softmax").output.data, batch, heads, length, embedDim / heads);
      holds(worst(output, stored("y").data, close), "output");
    });
  });
}
