/** Decoders of every family against the float64 reference, and their caches, batches and views against themselves. */
import { expect, test } from "@jest/globals";
import type { DecoderSession } from "../../dist/model/session.js";
import { referenceDecoder } from "./reference-decoder.ts";
import { FAMILIES, forReference, makeDecoder, numbers, randomWeights } from "./support/decoders.ts";
import { describeVariants } from "./support/instances.ts";

const LENGTH = 13;
const tokensOf = (seed: number, length: number, vocabSize: number): number[] => {
  const random = numbers(seed);
  return Array.from({ length }, () => Math.floor(((random() + 1) / 2) * vocabSize));
};
const largest = (values: Iterable<number>): number => {
  let most = 0;
  for (const value of values) most = Math.max(most, Math.abs(value));
  return most;
};
/** Equal within `bound` of the largest expected number. */
function near(found: ArrayLike<number>, expected: readonly number[], bound: number): void {
  expect(found.length).toBe(expected.length);
  const worst = largest(expected.map((value, n) => value - found[n]!));
  expect(worst).toBeLessThanOrEqual(bound * largest(expected));
}
/** Rows of logits as steps of one token give them. */
function stepped(session: DecoderSession, tokens: readonly number[]): number[][] {
  return tokens.map((token) => {
    session.forward(Int32Array.of(token));
    return Array.from(session.logits().data);
  });
}

describeVariants((lb) => {
  for (const [name, settings] of Object.entries(FAMILIES)) {
    const weights = randomWeights(settings, 5);
    const tokens = tokensOf(3, LENGTH, settings.vocabSize);
    const expected = referenceDecoder(settings, forReference(weights), tokens);
    const flat = expected.logits.flat();

    test(`R22: ${name}: logits, weights and each layer's reading are those of the reference`, () => {
      const decoder = makeDecoder(lb, settings, weights);
      expect(decoder.missing()).toEqual([]);
      const session = decoder.session({ batch: 1, capacity: LENGTH, chunk: LENGTH });
      const layers = Array.from({ length: settings.layers }, (_, layer) => layer);
      const heads = [settings.heads - 1, 0];
      const seen = session.forward(Int32Array.from(tokens), {
        logits: "all",
        weights: { layers, heads },
        lens: layers,
      });
      expect(seen.logits!.dims).toEqual([1, LENGTH, settings.vocabSize]);
      near(seen.logits!.data, flat, 2e-5);
      near(session.logits().data, expected.logits.at(-1)!, 2e-5);
      for (const { layer, tensor, firstPosition } of seen.weights!) {
        expect([firstPosition, tensor.dims]).toEqual([0, [1, 2, LENGTH, LENGTH]]);
        near(
          tensor.data,
          heads.flatMap((head) => expected.weights[layer]![head]!.flat()),
          2e-5,
        );
      }
      for (const { layer, tensor } of seen.lens!) near(tensor.data, expected.lens[layer]!.flat(), 2e-5);
      session.dispose();
      decoder.dispose();
    });

    test(`R16: ${name}: token by token, or in chunks, the logits are those of one pass`, () => {
      const decoder = makeDecoder(lb, settings, weights);
      for (const rolling of [false, true]) {
        const session = decoder.session({ batch: 1, capacity: LENGTH, chunk: 4, rolling });
        near(stepped(session, tokens).flat(), flat, 2e-5);
        session.reset();
        for (let from = 0; from < LENGTH; from += 4) {
          const part = tokens.slice(from, from + 4);
          const { logits } = session.forward(Int32Array.from(part), { logits: "all" });
          near(logits!.data, expected.logits.slice(from, from + 4).flat(), 4e-5);
        }
        session.dispose();
      }
      decoder.dispose();
    });

    test(`R16: ${name}: a row padded on the left, in a batch, gives what it gives alone, and at every step after`, () => {
      const decoder = makeDecoder(lb, settings, weights);
      const lengths = [7, 4, 1];
      const rows = lengths.map((length, row) => tokensOf(20 + row, length + 3, settings.vocabSize));
      const batch = rows.length;
      const session = decoder.session({ batch, capacity: 10, chunk: 7 });
      const [padded, mask] = [new Int32Array(batch * 7).fill(-1), new Uint8Array(batch * 7)];
      rows.forEach((row, b) => {
        padded.set(row.slice(0, lengths[b]), b * 7 + 7 - lengths[b]!);
        mask.fill(1, b * 7 + 7 - lengths[b]!, b * 7 + 7);
      });
      session.forward(padded, { mask });
      expect(session.padding).toEqual([0, 3, 6]);
      const alone = rows.map((row, b) => {
        const single = decoder.session({ batch: 1, capacity: 10, chunk: 10 });
        single.forward(Int32Array.from(row.slice(0, lengths[b])));
        const found = [Array.from(single.logits().data), ...stepped(single, row.slice(lengths[b]))];
        single.dispose();
        return found;
      });
      for (let step = 0; step <= 3; step++) {
        const { data } = session.logits();
        for (let b = 0; b < batch; b++) {
          const found = data.subarray(b * settings.vocabSize, (b + 1) * settings.vocabSize);
          near(found, alone[b]![step]!, 1e-5);
        }
        if (step < 3) session.forward(Int32Array.from(rows, (row, b) => row[lengths[b]! + step]!));
      }
      session.dispose();
      decoder.dispose();
    });
  }
});
