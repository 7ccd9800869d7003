import type { Command } from 'commander'
import { type CliContext, version } from './context.ts'
import { worksWithoutData } from './ev-command.ts'
import { printJson } from './print.ts'

export function defineVersion(command: Command, context: CliContext): void {
  worksWithoutData(command)
  command
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev version\n  ev version --json')
    .action(flags => versionCommand(context, flags))
}

/** Prints what a bug report needs. */
function versionCommand(context: CliContext, { json = false }: { readonly json?: boolean }): void {
  const { arch, platform, version: node } = process
  if (json) printJson(context, { version: version(), node, platform, arch })
  else context.stdout.write(`ev ${version()} (Node ${node}, ${platform} ${arch})\n`)
}
