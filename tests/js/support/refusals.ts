/** Refusals as tables: the call, the code of its error, and what the message shows. */
import { expect, test } from "@jest/globals";
import type { ErrorCode, Lookback } from "lookback";
import { caught, expectAlive, expectError } from "./helpers.js";

export type Refusal = [rule: string, code: ErrorCode, shown: string[], action: (lb: Lookback) => unknown];

/** The instance as JavaScript sees it, where no compiler has looked at the arguments. */
// biome-ignore lint/suspicious/noExplicitAny: the wrong types are the point
export const loose = (lb: Lookback): any => lb;

/** After each refusal nothing more is held, and the instance calculates as before. */
export function testRefusals(lb: Lookback, refusals: readonly Refusal[]): void {
  test.each(refusals.map((refusal) => [refusal[0], refusal[1], refusal] as const))(
    "%s → %s",
    (_rule, code, [, , shown, action]) => {
      const before = lb.memory();
      const error = caught(() => action(lb));
      expectError(error, code, ...shown);
      expect(error.name).toBe("LookbackError");
      expect(lb.memory()).toMatchObject({ bytes: before.bytes, allocations: before.allocations });
      expectAlive(lb);
    },
  );
}
