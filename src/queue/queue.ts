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
  /**
   * Called after a finished task was removed; returns when it is due again. A put by another
   * process is rejected while the task runs, so the work it was for may be visible only now. If
   * omitted, such work must be found in another way.
   */
  readonly recheck?: (key: string) => Promise<Reschedule>
}

export interface Worker {
  /** Claims no new tasks and resolves once none is running. Idempotent. */
  stop(): Promise<void>
}

/** Task counts of all kinds at the last count; for a shared queue, those of all processes. */
export type QueueStatus = { readonly waiting: number; readonly running: number }

/**
 * A task queue with one rule: at most one task per kind and key, waiting or running. One task per
 * connection slot of an operator therefore limits the sessions of that operator across all workers.
 */
export interface Queue {
  /**
   * Enqueues a task, due at `dueAt` (epoch ms; now if omitted). A waiting task keeps the earlier
   * time. A running one runs once more, or is rechecked if another process runs it. Tasks due later
   * are kept in memory only.
   */
  put(kind: string, key: string, dueAt?: number): Promise<void>
  /** Enqueues many keys of one kind at once. */
  putAll(kind: string, keys: readonly string[], dueAt?: number): Promise<void>
  /**
   * Starts a worker for tasks of a kind. If the handler throws, the task is retried after
   * `retryMs`.
   */
  work(kind: string, handler: Handler, options: WorkOptions): Worker
  status(): QueueStatus
  /** Stops all workers. Tasks enqueued later do not run here. */
  close(): Promise<void>
}
