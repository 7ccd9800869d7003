import { Batcher } from '../../platform/batcher.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Queue } from '../../queue/queue.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../worker/worker-timings.ts'

/** One connection that an operator allows to one egress. */
export type Slot = { readonly operator: string; readonly egress: string }

/** Where the entries of an egress are: a process works on those of its own. */
export const probeKind = (egress: string) => `probe/${egress}`

/** The entry of one connection to an operator, counted from 0. */
export const slotKey = (operator: string, number: number) => `${operator}#${number}`

/** Which operator an entry is for. */
export const operatorOf = (key: string) => key.slice(0, key.lastIndexOf('#'))

/** Takes what is to be put into the queue. */
export interface ProbeTasks {
  /** The first slot of an operator and egress; due now when `dueAt`, epoch ms, is left out. Resolves when it is there. */
  put(slot: Slot, dueAt?: number): Promise<void>
  /** The first `count` of them, due now. */
  putAll(slot: Slot, count: number): Promise<void>
}

/** Puts each by itself, where that costs nothing. */
export function directTasks(queue: Queue): ProbeTasks {
  return {
    put: ({ operator, egress }, dueAt) => queue.put(probeKind(egress), slotKey(operator, 0), dueAt),
    putAll: ({ operator, egress }, count) =>
      queue.putAll(probeKind(egress), keysOf(operator, count)),
  }
}

/** Keys of one flush; a statement takes them as one JSON text of about 300 KB. */
const KEYS_MAX = 10_000

type EntryTimings = Pick<WorkerTimings, 'entriesMs' | 'roundMs'>

/**
 * Puts them in groups, those of the same second together: each statement costs a round trip to the
 * database.
 */
export function gatheredTasks(
  queue: Queue,
  clock: Clock,
  { entriesMs, roundMs }: EntryTimings = DEFAULT_WORKER_TIMINGS,
): ProbeTasks {
  const batcher = new Batcher<Wanted>({
    ...{ clock, waitMs: entriesMs, sizeMax: KEYS_MAX, sizeOf: ({ keys }) => keys.length },
    async run(wanted) {
      const groups = Map.groupBy(wanted, ({ kind, dueAt }) => `${dueAt} ${kind}`)
      await Promise.all([...groups.values()].map(group => putGroup(queue, group)))
    },
  })
  return {
    put({ operator, egress }, dueAt = 0) {
      const due = dueAt > clock.now() ? Math.ceil(dueAt / roundMs) * roundMs : undefined
      return batcher.add({ kind: probeKind(egress), keys: [slotKey(operator, 0)], dueAt: due })
    },
    putAll: ({ operator, egress }, count) =>
      batcher.add({ kind: probeKind(egress), keys: keysOf(operator, count), dueAt: undefined }),
  }
}

type Wanted = {
  readonly kind: string
  readonly keys: readonly string[]
  readonly dueAt: number | undefined
}

/** Puts keys of one kind that are due at the same time. */
async function putGroup(queue: Queue, group: readonly Wanted[]): Promise<void> {
  const [first] = group
  if (first === undefined) return
  const keys = new Set(group.flatMap(({ keys }) => keys))
  await queue.putAll(first.kind, [...keys], first.dueAt)
}

const keysOf = (operator: string, count: number) =>
  Array.from({ length: count }, (_, number) => slotKey(operator, number))
