import type { Command } from 'commander'
import { type CliContext, type SetExitCode, version } from './context.ts'
import { worksWithoutData } from './ev-command.ts'
import { printJson } from './print.ts'

export function defineVersion(
  command: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  worksWithoutData(command)
  command
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev version\n  ev version --json')
    .action(flags => setExitCode(versionCommand(context, flags)))
}

/** Prints what a bug report needs. */
function versionCommand(
  context: CliContext,
  { json = false }: { readonly json?: boolean },
): number {
  const { arch, platform, version: node } = process
  if (json) printJson(context, { version: version(), node, platform, arch })
  else context.stdout.write(`ev ${version()} (Node ${node}, ${platform} ${arch})\n`)
  return 0
}
