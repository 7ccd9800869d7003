import { type CliContext, version } from './context.ts'
import { printJson } from './print.ts'

/** Runs `ev version`, which prints what a bug report needs, and returns the exit code. */
export function versionCommand(
  context: CliContext,
  { json = false }: { readonly json?: boolean },
): number {
  const { arch, platform, version: node } = process
  if (json) printJson(context, { version: version(), node, platform, arch })
  else context.stdout.write(`ev ${version()} (Node ${node}, ${platform} ${arch})\n`)
  return 0
}
