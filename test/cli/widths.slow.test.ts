import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { emptyFolder, type Ran, runEv } from '../support/cli.ts'
import { startService, verifyList } from '../support/cli-service.ts'
import { homeWith, newKey } from '../support/cli-webhooks.ts'
import { countedRandom } from '../support/random.ts'

const LIST = `email\n${['valid@x.example', 'invalid@y.example', 'ann@gmial.com', 'n/a'].join('\n')}\n`
const EVENTS = 'email,event\nvalid@x.example,delivered\nb@x.example,bounced\n'
/** Stands for the ID of the job of a service. */
const JOB = 'JOB'
const HOOK = ['--webhook-allow-ranges', '127.0.0.0/8']

/** The main output of commands, in an order in which they work. */
const COMMANDS: readonly (readonly string[])[] = [
  ['version'],
  ['verify', '--sandbox', 'valid@x.example'],
  ['verify', '--sandbox', 'valid@x.example', 'invalid@y.example', 'ann@gmial.com'],
  ['verify', '--sandbox', '--explain', 'catchall@a-rather-long-name.mail.example.com'],
  ['bulk', 'list.csv', '--sandbox'],
  ['bulk', 'list.csv', '--sandbox', '-o', 'split.csv', '--split'],
  ['bulk', 'image.csv'],
  ['jobs'],
  ['jobs', 'show', JOB],
  ['jobs', 'reverify', JOB, '--only', 'unknown'],
  ['jobs', 'changes', JOB],
  ['jobs', 'cancel', JOB],
  ['jobs', 'resume', JOB],
  ['jobs', 'download-url', JOB, '--base-url', 'https://ev.example.com'],
  ['schedules'],
  ['schedules', 'create', JOB, '--every', '30', '--only', 'unknown'],
  ['accounts'],
  ['accounts', 'create', '--name', 'Ops', '--plan', 'starter'],
  ['accounts', 'set-plan', 'Ops', 'professional'],
  ['accounts', 'set-email', 'Ops', 'ops@example.com'],
  ['accounts', 'set-admin', 'Ops', 'on'],
  ['keys'],
  [
    'keys',
    'create',
    '--name',
    'CI',
    '--account',
    'Ops',
    '--rate-limit',
    '2000',
    '--expires',
    '90d',
  ],
  ['keys', 'rotate', 'key_none'],
  [
    'webhooks',
    'create',
    '--account',
    'Ops',
    '--url',
    'https://127.0.0.1/hook',
    '--events',
    '*',
    ...HOOK,
  ],
  ['webhooks'],
  ['webhooks', 'deliveries', 'wh_none'],
  ['feedback', 'import', 'events.csv', '--account', 'Ops'],
  ['feedback', 'report', '--account', 'Ops'],
  [
    'feedback',
    'sources',
    'create',
    'postmark',
    '--account',
    'Ops',
    '--base-url',
    'https://ev.example.com',
  ],
  ['feedback', 'sources'],
  ['audit'],
  ['config'],
  ['lists', 'update', 'blocked', 'entries.txt', '--blocked-file', 'blocked.txt'],
  ['backup', 'copy.sqlite'],
  ['purge', '--dry-run'],
  ['purge', '--all', '--yes'],
  ['migrate', '--from', 'none', '--to', 'postgres://127.0.0.1:1/ev'],
  ['simulate', 'none.json'],
  ['worker'],
  ['serve', '--listen', '0.0.0.0:0'],
  ['mcp', '--url', 'nowhere'],
]

let made: { readonly home: string; readonly job: string }
beforeAll(async () => {
  const home = await homeWith('Shop')
  const key = await newKey(home)
  const service = await startService(home)
  const body = { emails: ['valid@x.example', 'timeout@x.example'] }
  made = { home, job: await verifyList(service, key, { sandbox: true, body }) }
  await service.end('SIGTERM')
})

/** Runs all commands in a new folder of this name, with the same IDs and keys each time. */
async function runAll(home: string, columns: number): Promise<readonly Ran[]> {
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'list.csv'), LIST)
  writeFileSync(join(home, 'image.csv'), Buffer.from('89504e470d0a1a0a', 'hex'))
  writeFileSync(join(home, 'events.csv'), EVENTS)
  writeFileSync(join(home, 'entries.txt'), 'blocked.example\n')
  cpSync(join(made.home, 'data'), join(home, 'data'), { recursive: true })
  const options = {
    home,
    columns,
    offline: true,
    environment: { EV_DATA_DIR: 'data' },
    context: { random: countedRandom() },
  }
  const ran: Ran[] = []
  for (const command of COMMANDS) {
    const args = command.map(word => (word === JOB ? made.job : word))
    ran.push(await runEv(args, options))
  }
  return ran
}

/** The visible lines, without the progress of `ev bulk`, which is redrawn. */
function linesOf({ stdout, stderr }: Ran): string[] {
  const text = stripVTControlCharacters(`${stdout}${stderr}`)
  return text.slice(Math.max(0, text.search(/^ {2}SIMULATED results$/m))).split('\n')
}

/**
 * The words of a text; numbers, units of time and signatures are alike, because times and durations
 * differ.
 */
const wordsOf = (lines: readonly string[]) =>
  lines
    .flatMap(line => line.split(/\s+/))
    .map(word =>
      word
        .replace(/\bsignature=\w+/, 'signature=')
        .replace(/\d[\d,.]*/g, '0')
        .replace(/^(ms|min)$/, 's'),
    )
    .filter(word => word !== '')

/** A long word, such as a path, may be continued on the next line after one of these. */
const SEPARATOR = /[/.:?&=_@,-]/

/** Whether a word is one of these, or a part of one that begins and ends at separators. */
function isWhole(word: string, words: ReadonlySet<string>): boolean {
  if (words.has(word)) return true
  return [...words].some(long => {
    const at = long.indexOf(word)
    const isStart = at === 0 || SEPARATOR.test(long[at - 1] ?? '')
    const isEnd = at + word.length === long.length || SEPARATOR.test(word.at(-1) ?? '')
    return at >= 0 && isStart && isEnd
  })
}

/** A URL is not broken, so that it can be opened. */
const ENDS_WITH_URL = /^\s*(?:URL +)?https:\S+$/

/** Words that one run may have alone: a continued command, a suggestion below its row, a rate. */
const NARROW_WORDS = ['\\', 'Did', 'you', 'mean', 'ann@gmail.com?', '(0/s),']

test.each([60, 80])(
  'the main output of each command fits %i columns, without a cut word',
  async columns => {
    const home = join(emptyFolder(), 'home')
    const wide = await runAll(home, 1_000)
    const narrow = await runAll(home, columns)
    const faults: string[] = []
    for (const [n, command] of COMMANDS.entries()) {
      const [before, ran] = [wide[n] as Ran, narrow[n] as Ran]
      const name = `ev ${command.join(' ')}`
      expect(ran.code, name).toBe(before.code)
      const lines = linesOf(ran)
      const words = new Set([...wordsOf(linesOf(before)), ...NARROW_WORDS])
      faults.push(
        ...lines
          .filter(line => line.length > columns && !ENDS_WITH_URL.test(line))
          .map(line => `${name}: too long: ${line}`),
        ...wordsOf(lines)
          .filter(word => !isWhole(word, words))
          .map(word => `${name}: cut: ${word}`),
      )
    }
    expect(faults).toEqual([])
  },
)
