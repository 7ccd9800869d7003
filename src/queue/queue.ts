import { SECOND } from '../platform/clock.ts'

/** When a task runs next, epoch ms, or `done`. */
export type Reschedule = { readonly dueAt: number } | 'done'

/** The lease of a worker on one task. */
export type Lease = {
  /** Aborts when the worker stops: the handler should finish its current step and return. */
  readonly stopping: AbortSignal
  /**
   * Aborts when another worker may hold the task, for example after this machine was suspended: the
   * handler must return at once and write nothing.
   */
  readonly lost: AbortSignal
}

export type Handler = (key: string, lease: Lease) => Promise<Reschedule>

export type WorkOptions = {
  /** Maximum concurrent tasks. */
  readonly concurrency: number
}

export interface Worker {
  /** Claims no new tasks and resolves once none is running. Idempotent. */
  stop(): Promise<void>
}

/** A task queue with one rule: at most one task per kind and key, waiting or running. */
export interface Queue {
  /**
   * Enqueues a task, due at `dueAt` (epoch ms; now if omitted). A waiting task keeps the earlier
   * time. A running one runs once more; if another process runs it, the put is dropped, so the work
   * that it was for must be found in another way. Tasks due later are kept in memory only.
   */
  put(kind: string, key: string, dueAt?: number): Promise<void>
  /** Enqueues many keys of one kind at once. */
  putAll(kind: string, keys: readonly string[], dueAt?: number): Promise<void>
  /**
   * Starts a worker for tasks of a kind. If the handler throws, the task is retried after
   * `retryMs`.
   */
  work(kind: string, handler: Handler, options: WorkOptions): Worker
  /** Stops all workers. Tasks enqueued later do not run here. */
  close(): Promise<void>
}

/** Intervals and timeouts of a queue, in ms. */
export type QueueTimings = {
  /** Mean interval of the maintenance tick, which renews claims and polls. */
  readonly beatMs: number
  /**
   * Poll interval without notifications. A put wakes the workers of its own process directly and
   * those of other processes by a notification; while notifications are unavailable, each tick
   * polls.
   */
  readonly pollMs: number
  /**
   * How often expired claims are released; the next worker may see them only at its next poll.
   * pg-boss allows 1 s at least.
   */
  readonly monitorMs: number
  /**
   * A claim without a heartbeat for this long goes to another worker. pg-boss allows 10 s at least.
   */
  readonly heartbeatMs: number
  /** Heartbeat interval of claims. */
  readonly touchMs: number
  /**
   * Age of the last heartbeat at which a worker gives up its claim itself, shortly before it
   * expires.
   */
  readonly aliveMs: number
  /** Wait after a handler threw or the database failed, so that retries do not spin. */
  readonly retryMs: number
  /** Time without faults after which the log reports that the database works again. */
  readonly clearMs: number
  /** How long `close` waits for a database that does not respond. */
  readonly leaveMs: number
}

export const DEFAULT_QUEUE_TIMINGS: QueueTimings = {
  beatMs: SECOND,
  pollMs: 4 * SECOND,
  monitorMs: 4 * SECOND,
  heartbeatMs: 10 * SECOND,
  touchMs: 3 * SECOND,
  aliveMs: 9 * SECOND,
  retryMs: SECOND,
  clearMs: 5 * SECOND,
  leaveMs: 5 * SECOND,
}

/**
 * Throws if the intervals contradict each other: a claim must be renewed before this process gives
 * it up, and given up before pg-boss releases it.
 */
export function checkQueueTimings(timings: QueueTimings): void {
  const { touchMs, aliveMs, heartbeatMs } = timings
  if (touchMs >= aliveMs) throw new RangeError('touchMs must be less than aliveMs')
  if (aliveMs >= heartbeatMs) throw new RangeError('aliveMs must be less than heartbeatMs')
}
