import ora from 'ora'
import { composeEngine } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import type { ListLoader } from '../../engine/lists.ts'
import { refuseCancelled } from '../../jobs/job-state.ts'
import { type Job, readJob } from '../../jobs/job-store.ts'
import { startWorker } from '../../jobs/worker/start-worker.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { formatEstimate } from '../../platform/format.ts'
import { type Log, silentLog } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { type CliContext, externalDepsFrom } from '../context.ts'
import { EXIT_CODES } from '../exit.ts'

type WorkOptions = {
  readonly log: Log
  readonly lists: ListLoader
  readonly wait?: boolean
  readonly sandbox?: boolean
  readonly quiet?: boolean
}

/** Runs the job with live progress. Returns whether it was interrupted. */
export async function work(
  context: CliContext,
  database: Database,
  config: Config,
  options: WorkOptions,
  job: Job,
): Promise<boolean> {
  const progress: Progress = options.quiet
    ? noProgress
    : stderrProgress(context, 'reading the list')
  const { finished, watcher } = watch(progress)
  const { log, lists, sandbox = false } = options
  const worker = startWorker({
    ...{ database, log, random: context.random, ledger: null, baseUrl: '' },
    engineFor: () => engine,
    egresses: config.egresses.map(({ name }) => name),
    concurrency: config.concurrency,
    greylistDelayMs: config.greylistDelayMs,
    wait: () => options.wait ?? true,
    retryStorageErrors: false,
    ...watcher,
  })
  const cache = config.cache && !sandbox ? { cache: worker.cache } : {}
  const engine = composeEngine(config, externalDepsFrom(context, log), {
    lists,
    sandbox,
    list: true,
    ...cache,
  })
  const stopNotes = engine.resolverCheck?.onChange(failure =>
    progress.note(failure?.detail ?? null),
  )
  const { signal, dispose } = interruption(context)
  const stopWatching = watchCancellation(database, job.id, error =>
    watcher.onFailure(job.id, error),
  )
  try {
    worker.take(job.id)
    await Promise.race([finished, aborted(signal)]).catch(() => {})
    await worker.stop()
    if (signal.aborted) return (await readJob(database, job.id)).state !== 'completed'
    await finished
    return false
  } finally {
    dispose()
    stopWatching()
    stopNotes?.()
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
    onFailure: (_: string, error: unknown) => fail(error),
  }
  return { finished, watcher }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** A job that waits for greylisting writes nothing for minutes, so its state is polled as well. */
const POLL_INTERVAL_MS = 2 * SECOND

/**
 * Calls `onCancelled` when another process cancels the job. Returns a function that stops polling.
 */
export function watchCancellation(
  database: Database,
  jobId: string,
  onCancelled: (error: unknown) => void,
): () => void {
  const stop = () => void loop.stop()
  const loop = startLoop({
    ...{ name: 'cancellation poll', clock: database.clock, log: silentLog },
    ...{ everyMs: POLL_INTERVAL_MS, startAfterMs: POLL_INTERVAL_MS },
    run: async () => refuseCancelled(await readJob(database, jobId)),
    onFailure(error) {
      stop()
      onCancelled(error)
    },
  })
  return stop
}

/** Aborts the signal on the first Ctrl-C, so that work in flight can finish. A second one exits. */
export function interruption(context: CliContext): { signal: AbortSignal; dispose: () => void } {
  const stopping = new AbortController()
  const stop = () => {
    if (stopping.signal.aborted) context.exit(EXIT_CODES.interrupted)
    stopping.abort()
  }
  context.signals.on('SIGINT', stop)
  context.signals.on('SIGTERM', stop)
  return {
    signal: stopping.signal,
    dispose() {
      context.signals.off('SIGINT', stop)
      context.signals.off('SIGTERM', stop)
    },
  }
}

interface Progress {
  /** Shows the progress of a job. */
  show(job: Job): void
  /** Sets the reason why the list waits and redraws at once; null if it does not wait. */
  note(why: string | null): void
  /** Clears the live line. */
  end(): void
}

const DRAW_EVERY_MS = 100
/** Interval of plain lines when stderr is not a terminal, long enough to keep logs short. */
const PLAIN_EVERY_MS = 5 * SECOND

const noProgress: Progress = { show() {}, note() {}, end() {} }

/**
 * Prints rate, time left and counts to stderr: one live line in a terminal, otherwise plain lines.
 */
export function stderrProgress(
  context: Pick<CliContext, 'stderr' | 'clock'>,
  label: string,
): Progress {
  const { stderr, clock } = context
  // A terminal of unknown width reports 0 columns, for which ora would clear lines forever.
  const terminal = stderr.isTTY === true && (stderr.columns ?? 0) > 0
  const spinner = terminal
    ? ora({ stream: stderr, text: label, discardStdin: false }).start()
    : null
  const rate = new Rate(clock)
  let drawnAt = clock.monotonicNow()
  let line = label
  let waiting = ''
  const draw = () => {
    drawnAt = clock.monotonicNow()
    if (spinner !== null) spinner.text = `${line}${waiting}`
    else stderr.write(`${line}${waiting}\n`)
  }
  return {
    show(job) {
      const now = clock.monotonicNow()
      rate.note(job.done)
      if (now - drawnAt < (terminal ? DRAW_EVERY_MS : PLAIN_EVERY_MS)) return
      line = progressLine(job, rate.perSecond)
      draw()
    },
    note(why) {
      waiting = why === null ? '' : `  waiting: ${why}`
      draw()
    },
    end() {
      spinner?.stop()
    },
  }
}

export function progressLine(job: Job, perSecond: number): string {
  const share = job.total === 0 ? 100 : Math.floor((100 * job.done) / job.total)
  const left =
    perSecond > 0 ? `, ${formatEstimate(((job.total - job.done) * SECOND) / perSecond)} left` : ''
  return (
    `${share} %  ${job.done}/${job.total}  ${Math.round(perSecond)}/s${left}  ` +
    `deliverable ${job.deliverable}, risky ${job.risky}, ` +
    `undeliverable ${job.undeliverable}, unknown ${job.unknown}`
  )
}

/** Results per second over the last 30 seconds, because older rates predict the time left badly. */
class Rate {
  readonly #clock: Clock
  #samples: { at: number; done: number }[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  note(done: number) {
    const at = this.#clock.monotonicNow()
    const last = this.#samples.at(-1)
    if (last !== undefined && at - last.at < SECOND / 4) return
    this.#samples.push({ at, done })
    while ((this.#samples[0]?.at ?? at) < at - 30 * SECOND) this.#samples.shift()
  }

  get perSecond(): number {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)]
    if (first === undefined || last === undefined || last.at === first.at) return 0
    return ((last.done - first.done) * SECOND) / (last.at - first.at)
  }
}
