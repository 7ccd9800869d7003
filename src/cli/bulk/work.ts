import { openLearnedReplies } from '../../cluster/learned-replies.ts'
import { openWitnesses } from '../../cluster/witnesses.ts'
import { composeEngine, getNetwork } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { startClockSync } from '../../db/synchronize-clock.ts'
import type { ListLoader } from '../../engine/lists.ts'
import { FeedbackKnowledge } from '../../feedback/knowledge.ts'
import { finishJob } from '../../jobs/change-job.ts'
import { refuseCancelled } from '../../jobs/job-state.ts'
import { type Job, readJob } from '../../jobs/job-store.ts'
import { ListWorker } from '../../jobs/list/list-worker.ts'
import { DEFAULT_WORKER_TIMINGS } from '../../jobs/worker/worker-timings.ts'
import { orOnAbort } from '../../platform/abort.ts'
import { SECOND } from '../../platform/clock.ts'
import { type Log, silentLog } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { type CliContext, externalDepsFrom } from '../context.ts'
import { auditServices } from '../database.ts'
import type { LiveOutput } from '../live-output.ts'
import { startInterruption } from '../stop-signals.ts'
import { onFinishKey } from './finish-key.ts'
import { createProgress, noProgress, type Progress, watchWaits } from './progress.ts'

type WorkOptions = {
  readonly log: Log
  readonly lists: ListLoader
  readonly wait?: boolean
  readonly sandbox?: boolean
  readonly quiet?: boolean
  readonly live: LiveOutput
}

/**
 * A user waits at the terminal. Most servers reply to RCPT within two seconds; the addresses that
 * are still unanswered then are probed when the list continues.
 */
const TIMINGS = { ...DEFAULT_WORKER_TIMINGS, drainMs: 2 * SECOND }

/** Runs the job with live progress. Returns whether it was interrupted. */
export async function work(
  context: CliContext,
  database: Database,
  config: Config,
  options: WorkOptions,
  job: Job,
): Promise<boolean> {
  const key = options.quiet ? null : onFinishKey(context, () => void finish())
  const progress: Progress =
    key === null ? noProgress : createProgress(context, options.live, key.hint)
  const { finished, watcher } = watch(progress)
  const { log, lists, sandbox = false } = options
  const worker = new ListWorker({
    database,
    log,
    random: context.random,
    feedback: sandbox ? null : new FeedbackKnowledge(database, config),
    engineFor: () => engine,
    egresses: config.egresses.map(({ name }) => name),
    ledger: null,
    baseUrl: '',
    // The list can be started again.
    retryStorageErrors: false,
    concurrency: config.concurrency,
    greylistDelayMs: config.greylistDelayMs,
    wait: options.wait ?? true,
    onFinishing: () => {
      if (key !== null) options.live.print('Finishing: waiting rows get their current result.\n')
    },
    timings: TIMINGS,
    ...watcher,
  })
  const cache = config.cache && !sandbox ? { cache: worker.cache } : {}
  const stores = { database, log, network: getNetwork(config) }
  const learnedReplies = openLearnedReplies(stores)
  const witnesses = openWitnesses(stores)
  const engine = composeEngine(config, externalDepsFrom(context, log), {
    lists,
    learnedReplies,
    // Without a cache, a list that is deleted leaves no address behind.
    ...(config.cache ? { witnesses } : {}),
    sandbox,
    ...cache,
  })
  async function finish(): Promise<void> {
    await finishJob({ database, worker, ...auditServices(context) }, job).catch(error =>
      watcher.onFailure(job.id, error),
    )
  }
  const stopNotes = engine.resolverCheck?.onChange(failure =>
    progress.note(failure?.detail ?? null),
  )
  const clockSync = startClockSync(database, silentLog)
  const { signal, dispose } = startInterruption(context, 'saving the results of open connections')
  const stopWatching = watchCancellation(database, job.id, error =>
    watcher.onFailure(job.id, error),
  )
  const stopWaits = options.quiet
    ? () => {}
    : watchWaits(
        { database, engine, inMemory: jobId => worker.waitingInMemory(jobId) },
        job.id,
        progress.setWait,
      )
  try {
    worker.take(job.id)
    await orOnAbort(finished, signal, null).catch(() => {})
    await worker.stop()
    if (signal.aborted) return (await readJob(database, job.id)).state !== 'completed'
    await finished
    return false
  } finally {
    key?.dispose()
    dispose()
    stopWatching()
    stopNotes?.()
    stopWaits()
    progress.end()
    await clockSync.stop()
    await engine.close()
    await Promise.all([learnedReplies.close(), witnesses.close()])
  }
}

function watch(progress: Progress) {
  const { promise: finished, resolve, reject } = Promise.withResolvers<void>()
  finished.catch(() => {})
  const watcher = {
    onProgress(job: Job) {
      progress.show(job)
      if (job.state === 'completed') resolve()
    },
    onFailure: (_: string, error: unknown) => reject(error),
  }
  return { finished, watcher }
}

/** A job that waits for greylisting writes nothing for minutes, so its state is polled as well. */
const POLL_INTERVAL_MS = 2 * SECOND

/**
 * Calls `onCancelled` when another process cancels the job. Returns a function that stops polling.
 */
function watchCancellation(
  database: Database,
  jobId: string,
  onCancelled: (error: unknown) => void,
): () => void {
  const stop = () => void loop.stop()
  const loop = startLoop({
    clock: database.clock,
    everyMs: POLL_INTERVAL_MS,
    startAfterMs: POLL_INTERVAL_MS,
    run: async () => refuseCancelled(await readJob(database, jobId)),
    onFailure(error) {
      stop()
      onCancelled(error)
    },
  })
  return stop
}
