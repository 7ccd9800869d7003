import ora from 'ora'
import type { CopyProgress } from '../../maintenance/copy-data.ts'
import { SECOND } from '../../platform/clock.ts'
import type { CliContext } from '../context.ts'
import { named } from './migrate-report.ts'

const DRAW_EVERY_MS = 100
/** Where nobody watches live, a line now and then keeps logs short. */
const PLAIN_EVERY_MS = 5 * SECOND

/** How far a copy is, on stderr: one live line in a terminal, else plain lines. */
export function copyProgress({ stderr, clock }: Pick<CliContext, 'stderr' | 'clock'>) {
  const terminal = stderr.isTTY === true && (stderr.columns ?? 0) > 0
  const spinner = terminal
    ? ora({ stream: stderr, text: 'copying', discardStdin: false }).start()
    : null
  let drawnAt = clock.monotonicNow()
  return {
    show({ table, copied, all }: CopyProgress): void {
      const now = clock.monotonicNow()
      if (now - drawnAt < (terminal ? DRAW_EVERY_MS : PLAIN_EVERY_MS)) return
      drawnAt = now
      const line = `copying ${named(table)}: ${copied} of ${all}`
      if (spinner !== null) spinner.text = line
      else stderr.write(`${line}\n`)
    },
    end(): void {
      spinner?.stop()
    },
  }
}
