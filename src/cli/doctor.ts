import { styleText } from 'node:util'
import type { Command } from 'commander'
import type { Check } from '../doctor/doctor.ts'
import type { Finding } from '../doctor/finding.ts'
import { EvError } from '../platform/error.ts'
import { pluralize } from '../platform/format.ts'
import { plainIp } from '../platform/ip.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext, SetExitCode } from './context.ts'
import { databaseUrl } from './database-location.ts'
import { worksWithoutData } from './ev-command.ts'
import { EXIT_CODES } from './exit.ts'
import { printJson } from './print.ts'
import { addSettings, readConfig } from './settings.ts'
import { widthOf, wrapText } from './width.ts'

const EXAMPLES = `
Examples:
  ev doctor --helo probe.example.com --mail-from probe@example.com
  ev doctor --json
  ev doctor --ask mx.example.com,192.0.2.25

Exit codes: 0 no check failed, but there may be warnings; 1 at least one check failed.`

export function defineDoctor(doctor: Command, context: CliContext, setExitCode: SetExitCode): void {
  worksWithoutData(doctor)
  doctor
    .option(
      '--ask <host,…>',
      'mail servers to connect to, by name or IP address (default: large providers)',
    )
    .option('--json', 'print the results as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      setExitCode(await doctorCommand(context, flags))
    })
  addSettings(doctor, context)
}

type DoctorFlags = {
  readonly ask?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Prints each check as soon as it has run, and returns the exit code. */
async function doctorCommand(context: CliContext, flags: DoctorFlags): Promise<number> {
  const config = readConfig(context, flags)
  const exchangers = flags.ask === undefined ? null : parseHosts(flags.ask)
  const { clock, random, externalDeps } = context
  const options = { databaseUrl: databaseUrl(config), exchangers }
  const { composeDoctor } = await import('../compose/doctor.ts')
  const { runChecks } = await import('../doctor/doctor.ts')
  const target = composeDoctor(config, options, { clock, random, ...externalDeps })
  const stop = () => context.exit(EXIT_CODES.interrupted)
  context.signals.once('SIGINT', stop)
  try {
    const checks: Check[] = []
    for await (const check of runChecks(target)) {
      checks.push(check)
      if (!flags.json) context.stdout.write(`${printed(context, check)}\n`)
    }
    const ok = checks.every(({ state }) => state !== 'fail')
    if (flags.json) printJson(context, { ok, checks })
    else {
      const width = widthOf(context, context.stdout) ?? Number.POSITIVE_INFINITY
      context.stdout.write(`\n${wrapText(summary(checks), width).join('\n')}\n`)
    }
    return ok ? 0 : 1
  } finally {
    context.signals.off('SIGINT', stop)
    target.close()
  }
}

function parseHosts(value: string): string[] {
  const hosts = value.split(',').map(host => host.trim().replace(/^\[(.*)\]$/, '$1'))
  const wrong = hosts.find(host => plainIp(host) === null && !HOST_NAME.test(host))
  if (wrong === undefined) return hosts
  throw new EvError(
    'usage',
    `--ask has "${sanitizeText(wrong)}"; it takes host names or IP addresses of mail servers, such as mx.example.com,192.0.2.25.`,
  )
}

const HOST_NAME = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*$/i

const MARKS = { ok: '✔', warn: '!', fail: '✘' } as const satisfies Record<Finding['state'], string>
const COLORS = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<
  Finding['state'],
  string
>
/** Width of the longest check name. */
const NAME_WIDTH = 15

function printed(context: CliContext, { check, egress, state, says, todo }: Check): string {
  const { stdout } = context
  const name = check.replace('-', ' ').padEnd(NAME_WIDTH)
  const width = widthOf(context, stdout)
  const room = width === null ? Number.POSITIVE_INFINITY : Math.max(20, width - NAME_WIDTH - 3)
  const texts = [`${egress === null ? '' : `${egress}: `}${says}`]
  if (todo !== null) texts.push(`to do: ${todo}`)
  const lines = texts.flatMap(text => wrapText(text, room))
  const mark = styleText(COLORS[state], MARKS[state], { stream: stdout })
  return `${mark} ${name} ${lines.join(`\n${' '.repeat(NAME_WIDTH + 3)}`)}`
}

function summary(checks: readonly Check[]): string {
  const [failed, warned] = (['fail', 'warn'] as const).map(
    state => checks.filter(check => check.state === state).length,
  ) as [number, number]
  const warnings = pluralize(warned, 'warning')
  if (failed > 0) {
    const failures = `${pluralize(failed, 'failure')}${warned > 0 ? `, ${warnings}` : ''}`
    return `${failures}. Fix the failures before you verify addresses.`
  }
  return warned > 0
    ? `No failures, ${warnings}. This machine can verify addresses.`
    : 'All checks passed. This machine can verify addresses.'
}
