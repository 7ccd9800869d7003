import { createInterface } from 'node:readline'
import { EvError } from '../platform/error.ts'
import type { CliContext } from './context.ts'
import { terminalWidth, wrapLines } from './width.ts'

/** Flag of the commands that delete data. */
export const YES = ['-y, --yes', 'do not ask for confirmation'] as const

/**
 * Asks for confirmation of what a command is about to do, such as "delete job_a". Without a
 * terminal, `--yes` is required. Throws EvError if it is not confirmed.
 */
export async function confirm(
  context: Pick<CliContext, 'stdin' | 'stderr' | 'env'>,
  { yes = false }: { readonly yes?: boolean },
  action: string,
): Promise<void> {
  if (yes) return
  const { stdin, stderr } = context
  if (stdin.isTTY !== true || stderr.isTTY !== true) {
    throw new EvError('usage', `This would ${action}. To confirm, add --yes.`)
  }
  const question = `This will ${action}. Continue? [y/N]`
  const terminal = createInterface({ input: stdin, output: stderr, terminal: false })
  try {
    const answer = await new Promise<string>(resolve => {
      // The end of the input leaves the cursor behind the question.
      terminal.once('close', () => resolve('\n'))
      terminal.question(`${wrapLines(question, terminalWidth(context, stderr))} `, resolve)
    })
    if (answer === '\n') stderr.write(answer)
    if (!/^y(es)?$/i.test(answer.trim())) {
      throw new EvError('interrupted', 'Not confirmed. Nothing was changed.')
    }
  } finally {
    terminal.close()
  }
}
