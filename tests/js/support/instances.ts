/** Runs a suite once for every variant that this engine supports, each with one shared instance. */
import { afterAll, describe, test } from "@jest/globals";
import { createLookback, type Lookback, LookbackError, type Variant } from "lookback";

const VARIANTS: readonly Variant[] = ["simd", "relaxed"];
const instances = new Map<Variant, Lookback>();

for (const variant of VARIANTS) {
  try {
    instances.set(variant, await createLookback({ variant }));
  } catch (error) {
    if (!(error instanceof LookbackError && error.code === "relaxed-unsupported")) throw error;
  }
}

/** `body` declares the tests of one variant; the instance is disposed of after the file's last test. */
export function describeVariants(body: (lb: Lookback, variant: Variant) => void): void {
  for (const variant of VARIANTS) {
    const lb = instances.get(variant);
    describe(variant, () => {
      if (lb) body(lb, variant);
      else test.skip(`${variant} needs an engine with relaxed SIMD`, () => {});
    });
  }
}

afterAll(() => {
  for (const lb of instances.values()) lb.dispose();
});
