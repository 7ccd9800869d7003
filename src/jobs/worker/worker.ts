import type { Job } from '../job-store.ts'

/** Works on jobs, however many, until it is stopped. */
export interface JobWorker {
  /** Takes a queued job up; one that it has already stays as it is. */
  take(jobId: string): void
  /** A job was cancelled or deleted: nothing more is asked for it. */
  drop(jobId: string): void
  /** Resolves with the job as it stands after its next commit, or with null when `signal` aborts. */
  changed(jobId: string, signal: AbortSignal): Promise<Job | null>
  /** Jobs that it has, and entries that wait or run. */
  status(): { readonly jobs: number; readonly waiting: number; readonly running: number }
  /** Lets conversations come to their end, writes what they brought, and resolves when nothing runs. May be called twice. */
  stop(): Promise<void>
}
