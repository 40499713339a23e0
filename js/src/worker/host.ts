import { diagnosing } from "../diagnose.js";
import type { Diagnosis } from "../diagnose-types.js";
import { kindOf, type LookbackError, messageOf } from "../errors.js";
import { heaps, type SlicedWork } from "../heap.js";
import { mergeAttention } from "../merge.js";
import { readOptions } from "../options.js";
import type { Lookback, LookbackOptions, Variant } from "../types.js";
import { CALL, type Failure, type Handle, Parcel, type Reply, type Request, unpack } from "./wire.js";

/** How the host hears and answers; the platform's own port. */
export interface Port {
  /** Lets what has arrived in the meantime be received. */
  breathe(): Promise<void>;
  post(reply: Reply, buffers: ArrayBuffer[]): void;
  listen(received: (request: Request) => void): void;
}

type Call = Extract<Request, { call: number }>;
type Methods = Record<string, unknown>;

/** A block of work takes about this long: what is heard between two of them is heard soon. */
const SLICE_MS = 20;
/** Thrown where a signal has ended a call. */
const ABORTED = Symbol("aborted");

const CONSTANTS = ["dims", "config", "batch", "keyLength", "variant", "fused", "threads", "threadsReason"];

/** Serves the calls of one page, one after the other. */
export function serve(port: Port, create: (options?: LookbackOptions) => Promise<Lookback>): void {
  const objects = new Map<number, object>();
  const numbers = new Map<object, number>();
  const waiting: Call[] = [];
  const aborted = new Set<number>();
  let made = 0;
  let busy = false;

  port.listen((request) => {
    if ("abort" in request) abort(request.abort);
    else waiting.push(request);
    if (!busy) void work();
  });

  function abort(id: number): void {
    const at = waiting.findIndex(({ call }) => call === id);
    if (at < 0) aborted.add(id);
    else port.post({ call: waiting.splice(at, 1)[0]!.call, aborted: true }, []);
  }

  async function work(): Promise<void> {
    busy = true;
    for (let call = waiting.shift(); call; call = waiting.shift()) await answer(call);
    aborted.clear(); // words about calls that had ended
    busy = false;
  }

  async function answer(call: Call): Promise<void> {
    const id = call.call;
    try {
      await port.breathe(); // word that it is not wanted any more may have come
      const parcel = new Parcel(true, handleOf);
      const value = parcel.pack(await perform(call));
      if (call.progress) port.post({ call: id, progress: 1 }, []);
      port.post({ call: id, value }, [...parcel.buffers]);
    } catch (error) {
      port.post(error === ABORTED ? { call: id, aborted: true } : { call: id, error: failureOf(error) }, []);
    }
  }

  async function perform(call: Call): Promise<unknown> {
    const check = () => {
      if (aborted.delete(call.call)) throw ABORTED;
    };
    check();
    const given = call.given.map((value) => unpack(value, objectOf));
    if (call.name === "start") return start(given[0] as LookbackOptions | undefined);
    const target = objects.get(call.target) as Methods;
    if (call.name === "dispose") return forget(call.target);
    if (call.name === "mergeAttention") return mergeAttention(...(given as Parameters<typeof mergeAttention>));
    const member = target[call.name];
    if (typeof member !== "function") return member;
    const last = given.at(-1);
    // One argument more than the method has is about the call; what it may say has been taken out by now.
    if (given.length > member.length && kindOf(last) === "Object") readOptions(last, CALL, call.name);
    const between = (fraction: number) => {
      check();
      if (call.progress && fraction < 1) port.post({ call: call.call, progress: fraction }, []);
    };
    if (call.name === "diagnose") return spelledOut(await inSteps(given, between));
    return inSlices(() => (member as (...given: unknown[]) => unknown).apply(target, given), between);
  }

  async function inSteps([q, k, v, options]: unknown[], between: (fraction: number) => void): Promise<Diagnosis> {
    const steps = diagnosing(heaps.get(objects.get(0)!)!, q, k, v, options);
    try {
      for (;;) {
        const step = steps.next();
        if (step.done) return step.value;
        between(step.value);
        await port.breathe();
      }
    } catch (error) {
      steps.return(undefined as never); // gives back what it holds
      throw error;
    }
  }

  /** Runs a call whose work the heap may put off, and then that work between looks at what else there is. */
  async function inSlices(run: () => unknown, between: (fraction: number) => void): Promise<unknown> {
    const heap = heaps.get(objects.get(0)!)!;
    let work: SlicedWork | undefined;
    heap.putOff = (own) => {
      work = own;
    };
    let result: unknown;
    try {
      result = run();
    } finally {
      heap.putOff = undefined;
    }
    if (!work) return result;
    const { items, run: runItems, end } = work;
    let done = 0;
    try {
      for (let count = 1; done < items; ) {
        between(done / items);
        const next = Math.min(items, done + count);
        const began = performance.now();
        runItems(done, next);
        const took = performance.now() - began;
        count = Math.max(1, Math.floor(((next - done) * SLICE_MS) / Math.max(took, 0.1)));
        done = next;
        await port.breathe();
      }
      between(1);
    } catch (error) {
      end(false);
      throw error;
    }
    end(true);
    return result;
  }

  async function start(options: LookbackOptions | undefined): Promise<Handle> {
    const urls = options?.wasmUrl as unknown;
    const table = kindOf(urls) === "Object" ? (urls as Record<Variant, string[]>) : undefined;
    const lb = await create(
      table ? { ...options, wasmUrl: (variant, threaded) => table[variant][Number(threaded)]! } : options,
    );
    objects.set(0, lb);
    return { id: 0, constants: constantsOf(lb) };
  }

  function handleOf(value: object): Handle | undefined {
    if (typeof (value as { dispose?: unknown }).dispose !== "function") return undefined;
    const known = numbers.get(value);
    if (known !== undefined) return { id: known };
    const id = ++made;
    objects.set(id, value);
    numbers.set(value, id);
    return { id, constants: constantsOf(value) };
  }

  function objectOf({ id }: Handle): unknown {
    return objects.get(id);
  }

  function forget(id: number): void {
    const object = objects.get(id) as { dispose(): void } | undefined;
    if (!object) return;
    object.dispose();
    objects.delete(id);
    numbers.delete(object);
  }
}

const constantsOf = (object: object): Record<string, unknown> =>
  Object.fromEntries(CONSTANTS.flatMap((name) => (name in object ? [[name, (object as Methods)[name]]] : [])));

/** A diagnosis is an array with more to it than its elements. */
const spelledOut = (found: Diagnosis) => ({ findings: [...found], examined: found.examined, told: String(found) });

const failureOf = (error: unknown): Failure => {
  const { code } = error as Partial<LookbackError>;
  const message = messageOf(error);
  return (error as Error | null)?.name === "LookbackError" && code ? { code, message } : { message };
};
