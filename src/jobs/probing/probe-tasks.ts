import { Batcher } from '../../platform/batcher.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Queue } from '../../queue/queue.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../worker/worker-timings.ts'

/** One connection that an operator allows to one egress. */
export type Slot = {
  readonly operator: string
  readonly egress: string
  /** Its number among these connections, from 0; left out: 0. */
  readonly number?: number
}

/** Returns the task kind of an egress: a process works on the tasks of its own egresses. */
export const probeKind = (egress: string) => `probe/${egress}`

/** Returns the task key of one connection to an operator, counted from 0. */
export const slotKey = (operator: string, number: number) => `${operator}#${number}`

/** Returns the slot of a task key. */
export function parseSlot(key: string, egress: string): Slot {
  const at = key.lastIndexOf('#')
  return { operator: key.slice(0, at), egress, number: Number(key.slice(at + 1)) }
}

/** Enqueues the probe tasks of slots. */
export interface ProbeTasks {
  /**
   * Enqueues the first slot of an operator and egress; due now if `dueAt`, epoch ms, is left out.
   * Resolves when it is enqueued.
   */
  put(slot: Slot, dueAt?: number): Promise<void>
  /** Enqueues the first `count` slots, due now. */
  putAll(slot: Slot, count: number): Promise<void>
}

/** Enqueues each task separately, for a queue in memory. */
export function directTasks(queue: Queue): ProbeTasks {
  return {
    put: ({ operator, egress }, dueAt) => queue.put(probeKind(egress), slotKey(operator, 0), dueAt),
    putAll: ({ operator, egress }, count) =>
      queue.putAll(probeKind(egress), slotKeys(operator, count)),
  }
}

/** Maximum number of keys per flush; a statement takes them as one JSON text of about 300 KB. */
const KEYS_MAX = 10_000

type BatchTimings = Pick<WorkerTimings, 'enqueueBatchMs' | 'roundMs'>

/**
 * Enqueues tasks in batches, grouped by the second in which they are due, because each statement
 * costs a round trip to the database.
 */
export function batchedTasks(
  queue: Queue,
  clock: Clock,
  { enqueueBatchMs, roundMs }: BatchTimings = DEFAULT_WORKER_TIMINGS,
): ProbeTasks {
  const batcher = new Batcher<TaskRequest>({
    clock,
    waitMs: enqueueBatchMs,
    sizeMax: KEYS_MAX,
    sizeOf: ({ keys }) => keys.length,
    async run(requests) {
      const groups = Map.groupBy(requests, ({ kind, dueAt }) => `${dueAt} ${kind}`)
      await Promise.all([...groups.values()].map(group => putGroup(queue, group)))
    },
  })
  return {
    put({ operator, egress }, dueAt = 0) {
      const due = dueAt > clock.now() ? Math.ceil(dueAt / roundMs) * roundMs : undefined
      return batcher.add({ kind: probeKind(egress), keys: [slotKey(operator, 0)], dueAt: due })
    },
    putAll: ({ operator, egress }, count) =>
      batcher.add({ kind: probeKind(egress), keys: slotKeys(operator, count), dueAt: undefined }),
  }
}

type TaskRequest = {
  readonly kind: string
  readonly keys: readonly string[]
  readonly dueAt: number | undefined
}

/** Enqueues keys of one kind that are due at the same time. */
async function putGroup(queue: Queue, group: readonly TaskRequest[]): Promise<void> {
  const [first] = group
  if (first === undefined) return
  const keys = new Set(group.flatMap(({ keys }) => keys))
  await queue.putAll(first.kind, [...keys], first.dueAt)
}

const slotKeys = (operator: string, count: number) =>
  Array.from({ length: count }, (_, number) => slotKey(operator, number))
