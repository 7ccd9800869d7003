import { systemClock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Config } from '../../config/settings.ts'
import type { Lists } from '../../engine/lists.ts'
import type { ResultMemory } from '../../engine/memory.ts'
import { recallAnswers } from '../../store/answers.ts'
import type { Database } from '../../store/database.ts'
import { type Job, readJob } from '../../store/job/jobs.ts'
import { wireEngine } from '../../wire.ts'
import { Recorder } from '../../work/recorder.ts'
import { runJob } from '../../work/run-job.ts'
import { watchCancellation } from './cancellation.ts'
import { interruption } from './interruption.ts'
import { noProgress, type Progress, stderrProgress } from './progress.ts'

export type WorkOptions = {
  readonly log: Log
  readonly lists: Lists
  readonly wait?: boolean
  readonly sandbox?: boolean
  readonly quiet?: boolean
}

/** Runs the job with live progress; true when it was interrupted. */
export async function work(
  database: Database,
  config: Config,
  options: WorkOptions,
  job: Job,
): Promise<boolean> {
  const progress: Progress = options.quiet
    ? noProgress
    : stderrProgress(systemClock, 'looking at the list')
  const { finished, watcher } = watch(progress)
  const recorder = new Recorder(database, job.id, watcher)
  const { log, lists, sandbox = false } = options
  const memory = config.cache && !sandbox ? { memory: listMemory(database, recorder) } : {}
  const engine = wireEngine(config, { log }, { lists, sandbox, list: true, ...memory })
  const { signal, dispose } = interruption()
  const endWatch = watchCancellation(database, job.id, watcher.onFailure)
  try {
    await runJob(
      {
        engine,
        database,
        recorder,
        log,
        jobId: job.id,
        concurrency: config.concurrency,
        wait: options.wait ?? true,
        greylistDelayMs: config.greylistDelayMs,
        stopping: signal,
      },
      finished,
    )
    if (signal.aborted) return (await readJob(database, job.id)).state !== 'completed'
    await finished
    return false
  } finally {
    dispose()
    endWatch()
    progress.end()
    await engine.close()
  }
}

function watch(progress: Progress) {
  let finish: (job: Job) => void = () => {}
  let fail: (error: unknown) => void = () => {}
  const finished = new Promise<Job>((resolve, reject) => {
    finish = resolve
    fail = reject
  })
  finished.catch(() => {})
  const watcher = {
    onProgress(job: Job) {
      progress.show(job)
      if (job.state === 'completed') finish(job)
    },
    onFailure: (error: unknown) => fail(error),
  }
  return { finished, watcher }
}

/** Answers of the database; new ones are written together with the results that they belong to. */
function listMemory(database: Database, recorder: Recorder): ResultMemory {
  return {
    recall: keys => recallAnswers(database, keys),
    // Durable soon, with its group: nobody waits for it.
    remember: async entries => void recorder.remember(entries),
  }
}
