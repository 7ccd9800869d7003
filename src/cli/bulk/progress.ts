import ora from 'ora'
import type { Job } from '../../jobs/job-store.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { formatEstimate } from '../../platform/format.ts'
import type { CliContext } from '../context.ts'

export interface Progress {
  /** Shows how a job stands. */
  show(job: Job): void
  /** Says from now on, and at once, why the list waits; null: it goes on. */
  note(why: string | null): void
  /** Takes the live line away. */
  end(): void
}

const DRAW_EVERY_MS = 100
/** Where nobody watches live, a line now and then keeps logs short. */
const PLAIN_EVERY_MS = 5 * SECOND

export const noProgress: Progress = { show() {}, note() {}, end() {} }

/** Rate, time left and counts of a job, on stderr: one live line in a terminal, else plain lines. */
export function stderrProgress(
  context: Pick<CliContext, 'stderr' | 'clock'>,
  label: string,
): Progress {
  const { stderr, clock } = context
  // A terminal that does not tell its width has 0 columns; ora would clear lines of it without end.
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

/** Results a second over the last half minute: what was done before says little of what comes. */
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
