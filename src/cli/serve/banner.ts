import { writeLog } from '../../platform/log.ts'
import { type CliContext, version } from '../context.ts'
import { timeZone } from '../print.ts'
import { CLI_LOG } from '../telemetry.ts'
import { terminalWidth, wrapHelp, wrapLines } from '../width.ts'
import type { ServeLog } from './log.ts'

type Banner = {
  /** URL of the listen address. */
  readonly url: string
  /** Base URL, at which clients reach the service. */
  readonly baseUrl: string
  readonly isPlain: boolean
  /** The first key, at the first start; null later. */
  readonly key: string | null
  /** Path of the page that shows the key once; null if there is none. */
  readonly path: string | null
  /** Sentences about plain HTTP and an invalid HELO name. */
  readonly notes: readonly string[]
}

/**
 * Prints the addresses and the first steps: a block on a terminal, otherwise events of the log. The
 * key goes only to stdout, after the start succeeded.
 */
export function printBanner(context: CliContext, log: ServeLog, banner: Banner): void {
  if (log.isPretty) printBlock(context, banner)
  else logBanner(context, log, banner)
}

function printBlock(context: CliContext, { baseUrl, key, path, notes }: Banner): void {
  const { stdout, stderr, clock } = context
  const width = terminalWidth(context, stderr)
  const say = (text: string) => void stderr.write(`${wrapLines(text, width)}\n`)
  say(`ev ${version()} is running at ${baseUrl}`)
  if (path !== null) {
    say('\nDashboard (this link signs you in once, within an hour):')
    say(`  ${baseUrl}${path}`)
  }
  if (key !== null) {
    say('\nAPI key with all scopes (shown once, so store it now):')
    const isShared = stdout.isTTY === true && stderr.isTTY === true
    if (isShared) stderr.write('  ')
    else say('  printed to stdout')
    stdout.write(`${key}\n`)
    say('\nVerify an address with it:')
    say(wrapHelp(`  export EV_KEY=ev_live_…\n  ${curlExample(baseUrl)}`, width ?? BLOCK_WIDTH))
  }
  say(`\nAPI documentation: ${baseUrl}/docs`)
  for (const note of notes) say(`note: ${note}`)
  say(`\nPress Ctrl-C to stop. Times below are in ${timeZone(clock.now())}.`)
}

/** Width of the block if stderr is not a terminal. */
const BLOCK_WIDTH = 80

function logBanner(
  context: CliContext,
  log: ServeLog,
  { url, baseUrl, isPlain, key, notes }: Banner,
): void {
  for (const note of notes) log.info(note)
  writeLog(log, CLI_LOG.listening, { baseUrl, tls: !isPlain }, url)
  if (key !== null) {
    context.stdout.write(`${key}\n`)
    writeLog(log, CLI_LOG.firstKeyPrinted)
  }
  writeLog(log, CLI_LOG.dashboardAt, {}, baseUrl)
  writeLog(log, CLI_LOG.exampleRequest, {}, curlExample(baseUrl))
  writeLog(log, CLI_LOG.documentationAt, {}, baseUrl)
}

/** Noted in the banner of a service without TLS. */
export const PLAIN_HTTP = 'This is plain HTTP. Use it for tests or behind a TLS proxy.'

const curlExample = (baseUrl: string) =>
  `curl -s ${baseUrl}/v1/verify/single -H "Authorization: Bearer $EV_KEY" ` +
  `-H 'Content-Type: application/json' -d '{"email": "user@example.com"}'`
