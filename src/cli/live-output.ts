import type { CliContext } from './context.ts'
import type { LiveText } from './live-text.ts'

/** Text at the bottom of a terminal and other output above it. */
export type LiveOutput = Pick<LiveText, 'width' | 'show' | 'print' | 'end'>

/**
 * Returns the output of stderr; nothing is drawn if that is not a terminal, or one that cannot move its
 * cursor (`TERM=dumb`, such as a shell in Emacs). `LiveText` is loaded only for a terminal, because its
 * spinner takes 40 ms to load.
 */
export async function openLiveOutput(
  context: Pick<CliContext, 'stderr' | 'env'>,
): Promise<LiveOutput> {
  const { stderr, env } = context
  if (stderr.isTTY !== true || env.TERM === 'dumb') {
    return { width: null, show() {}, print: text => void stderr.write(text), end() {} }
  }
  const { LiveText } = await import('./live-text.ts')
  return new LiveText(context)
}
