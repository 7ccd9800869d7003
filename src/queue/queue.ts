/** When an entry is to be worked on again, epoch ms; or that it is done with. */
export type Reschedule = { readonly dueAt: number } | 'done'

/** The right to work on one entry. */
export type Lease = {
  /** Aborts when the worker stops: finish what is begun and come back soon. */
  readonly stopping: AbortSignal
  /** Aborts when the entry may be another's by now, as after a machine that stood still: end at once, and write nothing. */
  readonly lost: AbortSignal
}

export type Handler = (key: string, lease: Lease) => Promise<Reschedule>

export type WorkOptions = {
  /** Entries worked on at the same time. */
  readonly concurrency: number
  /**
   * Called after an entry that its handler is done with was removed; gives when it is due again. A
   * put by another process is refused while the entry runs, so what it was for may be there only
   * now. Where this is left out such work must be found in another way.
   */
  readonly recheck?: (key: string) => Promise<Reschedule>
}

export interface Worker {
  /** Takes nothing new and resolves when nothing runs. May be called twice. */
  stop(): Promise<void>
}

/** Entries of all kinds, as last counted; of a queue that many share, those of all. */
export type QueueStatus = { readonly waiting: number; readonly running: number }

/**
 * Who works on what, by one rule: at most one entry per kind and key, waiting or running. So an entry
 * for each slot of an operator keeps the number of its sessions, however many work.
 */
export interface Queue {
  /**
   * Puts an entry, due at `dueAt` (epoch ms; now when left out). One that waits keeps the earlier
   * time; one that runs is run once more, or rechecked where another process runs it. What is due
   * later is lost with the process.
   */
  put(kind: string, key: string, dueAt?: number): Promise<void>
  /** The same for many keys of one kind, in one go. */
  putAll(kind: string, keys: readonly string[], dueAt?: number): Promise<void>
  /** Works on the entries of a kind. A handler that throws has its entry tried again after a while. */
  work(kind: string, handler: Handler, options: WorkOptions): Worker
  status(): QueueStatus
  /** Stops every worker. What is put later is not worked on here. */
  close(): Promise<void>
}
