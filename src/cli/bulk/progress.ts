import { CLASSES, type Class } from '../../engine/verdict/verdict.ts'
import { type Job, readJob } from '../../jobs/job-store.ts'
import { createJobRates } from '../../jobs/waits/job-rates.ts'
import { estimateTimeLeft } from '../../jobs/waits/time-left.ts'
import {
  buildWaitReport,
  describeWait,
  NO_WAITS,
  type WaitReport,
} from '../../jobs/waits/wait-report.ts'
import { SECOND } from '../../platform/clock.ts'
import { formatEstimate, formatNumber, formatProgress } from '../../platform/format.ts'
import { startLoop } from '../../platform/loop.ts'
import type { CliContext } from '../context.ts'
import type { LiveOutput } from '../live-output.ts'
import { timeText } from '../print.ts'
import { wrapText } from '../width.ts'

export interface Progress {
  /** Shows the progress of a job. */
  show(job: Job): void
  /** Sets the failure that the whole list waits for; null if there is none. */
  note(why: string | null): void
  /** Sets what rows wait for, null if the list moves on, and what the remaining time depends on. */
  setWait(wait: string | null, report: WaitReport): void
  /** Removes the live text. */
  end(): void
}

const DRAW_EVERY_MS = 100
/** Interval of plain lines when stderr is not a terminal, long enough to keep logs short. */
const PLAIN_EVERY_MS = 5 * SECOND

export const noProgress: Progress = { show() {}, note() {}, setWait() {}, end() {} }

/**
 * Prints a bar, rate, time left, counts and waits to stderr: live in a terminal, otherwise as plain
 * lines. `hint` is added to what rows wait for.
 */
export function createProgress(
  { clock }: Pick<CliContext, 'clock'>,
  live: LiveOutput,
  hint = () => '',
): Progress {
  const rates = createJobRates(clock)
  let figures: Figures = { rate: 0, leftMs: null }
  let report = NO_WAITS
  let drawnAt = clock.monotonicNow()
  let latest: Job | null = null
  let failure: string | null = null
  let wait: string | null = null
  const waiting = () => {
    const cause = failure ?? wait
    return cause === null ? null : `${cause}${hint()}`
  }
  const render = (width: number) =>
    latest === null ? ['Reading the list'] : progressLines(latest, figures, waiting(), width)
  const measure = (job: Job) => {
    const leftMs = estimateTimeLeft(job, rates.predict(job), report)
    figures = { rate: rates.measure(job) ?? 0, leftMs }
  }
  const draw = () => {
    drawnAt = clock.monotonicNow()
    if (live.width !== null) live.show(render)
    else if (latest !== null) live.print(`${progressLine(latest, figures, waiting())}\n`)
    else if (waiting() !== null) live.print(`waiting: ${waiting()}\n`)
  }
  if (live.width !== null) live.show(render)
  return {
    show(job) {
      const now = clock.monotonicNow()
      measure(job)
      latest = job
      if (now - drawnAt >= (live.width === null ? PLAIN_EVERY_MS : DRAW_EVERY_MS)) draw()
    },
    note(why) {
      failure = why
      // Without a terminal, the failure is in the log already.
      if (live.width !== null) draw()
    },
    setWait(why, current) {
      const isNew = why !== wait
      wait = why
      report = current
      if (latest !== null) measure(latest)
      // On a terminal the remaining time is current, too.
      if (isNew || live.width !== null) draw()
    },
    end: () => live.end(),
  }
}

/** The counts of a job. */
type Counts = Pick<Job, 'done' | 'total' | Class>

/** Prints the progress of a job that a service processes, in the same way. */
export function createServiceProgress({ clock }: Pick<CliContext, 'clock'>, live: LiveOutput) {
  let drawnAt = clock.monotonicNow()
  let lastWait: string | null = null
  return {
    show(job: Counts, figures: Figures, wait: string | null): void {
      if (live.width !== null) {
        live.show(width => progressLines(job, figures, wait, width))
        return
      }
      const now = clock.monotonicNow()
      if (wait === lastWait && now - drawnAt < PLAIN_EVERY_MS) return
      drawnAt = now
      lastWait = wait
      live.print(`${progressLine(job, figures, wait)}\n`)
    },
    end: () => live.end(),
  }
}

type WaitDeps = Parameters<typeof buildWaitReport>[0]

const POLL_INTERVAL_MS = 2 * SECOND
/** With more results since the last poll, the list does not stand still. */
const RESULTS_MIN = 20

/**
 * Calls `onWait` with what the rows of a job wait for, such as a greylisted retry, and the report
 * about it; the text is null while there is progress. Returns a function that stops polling.
 */
export function watchWaits(
  deps: WaitDeps,
  jobId: string,
  onWait: (wait: string | null, report: WaitReport) => void,
): () => void {
  const { clock } = deps.database
  let done = 0
  const loop = startLoop({
    clock,
    // The next run shows the present state.
    onFailure() {},
    everyMs: POLL_INTERVAL_MS,
    startAfterMs: POLL_INTERVAL_MS,
    async run() {
      const job = await readJob(deps.database, jobId)
      const isMoving = job.done - done >= RESULTS_MIN
      done = job.done
      const report = await buildWaitReport(deps, job)
      onWait(isMoving ? null : waitText(report), report)
    },
  })
  return () => void loop.stop()
}

/** Describes the first cause with a known end. A failed DNS check is logged when it happens. */
function waitText({ waits }: WaitReport): string | null {
  const wait = waits.find(({ until, reason }) => until !== null && reason !== 'dns_check')
  return wait === undefined ? null : describeWait(wait, timeText)
}

/** The rate of a job in rows per second, and its remaining time in ms; null if it is not known. */
type Figures = { readonly rate: number; readonly leftMs: number | null }

/** Width of the bar in characters. */
const BAR_MIN = 10
const BAR_MAX = 30

/** Formats progress as lines that are narrower than the terminal. */
export function progressLines(
  job: Counts,
  progress: Figures,
  waiting: string | null,
  width: number,
): string[] {
  // In the last column, some terminals wrap already.
  const room = width - 1
  const figures = figuresText(job, progress)
  const barWidth = Math.min(BAR_MAX, room - figures.length - 2)
  const head = barWidth < BAR_MIN ? figures : `${barText(job, barWidth)}  ${figures}`
  const lines = [head, countsText(job), ...(waiting === null ? [] : [`waiting: ${waiting}`])]
  return lines.flatMap(line => wrapText(line, room))
}

function barText({ done, total }: Counts, width: number): string {
  const full = total === 0 ? width : Math.floor((width * done) / total)
  return `${'█'.repeat(full)}${'░'.repeat(width - full)}`
}

export const progressLine = (job: Counts, progress: Figures, waiting: string | null): string =>
  `${figuresText(job, progress)}  ${countsText(job)}` +
  `${waiting === null ? '' : `  waiting: ${waiting}`}`

function figuresText(job: Counts, { rate, leftMs }: Figures): string {
  const left = leftMs === null ? '' : `, ${formatEstimate(leftMs)} left`
  return `${formatProgress(job.done, job.total)}  ${formatNumber(job.done)}/${formatNumber(job.total)}  ${formatNumber(Math.round(rate))}/s${left}`
}

const countsText = (job: Counts) =>
  CLASSES.map(klass => `${klass} ${formatNumber(job[klass])}`).join(', ')
