import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { startEv } from '../support/cli.ts'
import { fakeClock } from '../support/clock.ts'
import { rowsIn } from '../support/csv.ts'
import { tempFolder, tempSqlite } from '../support/database.ts'
import { Calls, failingClock, failingDial, failingResolver, runToEnd } from '../support/nth-call.ts'
import { watchFiles } from '../support/nth-file.ts'
import { watchSqlite } from '../support/nth-statement.ts'
import { countedRandom } from '../support/random.ts'
import { describeWrongRows, startSmallMail, TEXTS } from './small-list.ts'

/** The kinds of calls that `ev bulk` makes. */
export const BULK_KINDS = [
  'statement',
  'commit',
  'file',
  'dns',
  'connect',
  'read',
  'write',
  'timer',
] as const

const ARGS = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data']
const CONFIG = {
  helo: 'probe.test',
  'allow-ranges': ['192.0.2.0/24'],
  'special-domains': true,
  'sessions-per-second': 1_000,
  'greylist-delay': 1,
}

/**
 * Prepares `ev bulk` with a small list. The function runs it with the calls, of which one may fail,
 * and then again, as its user does, if it ended with an error. It returns what is wrong after that.
 */
export async function prepareBulkRuns(): Promise<(calls: Calls) => Promise<string[]>> {
  const folder = tempFolder()
  const watch = { calls: null as Calls | null, folder }
  watchSqlite(file => (file.startsWith(folder) ? (watch.calls ?? undefined) : undefined))
  await watchFiles(watch)
  let runs = 0
  return async calls => {
    const home = join(folder, `${++runs}`)
    try {
      return await runUntilDone(home, calls, watch)
    } finally {
      watch.calls = null
      rmSync(home, { recursive: true, force: true })
    }
  }
}

async function runUntilDone(
  home: string,
  calls: Calls,
  watch: { calls: Calls | null },
): Promise<string[]> {
  mkdirSync(join(home, 'data'), { recursive: true })
  tempSqlite(join(home, 'data/ev.sqlite'))
  writeFileSync(join(home, 'list.csv'), ['email', ...TEXTS, ''].join('\n'))
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(CONFIG))
  const clock = fakeClock()
  const mail = startSmallMail(clock)
  const random = countedRandom()
  const start = (used: Calls) => {
    const externalDeps = {
      resolver: failingResolver(mail.resolver, used),
      dial: failingDial(mail.dial({ name: 'default' }), used),
    }
    watch.calls = used
    const context = { clock: failingClock(clock, used), random, externalDeps }
    return runToEnd(clock, used, startEv(ARGS, { home, context }).ended)
  }
  const first = await start(calls)
  calls.end()
  const found: string[] = []
  if (first.code !== 0) {
    if (first.stderr.trim() === '') found.push(`exit code ${first.code} without a message`)
    const second = await start(new Calls(null))
    if (second.code !== 0) found.push(`again: exit code ${second.code}: ${second.stderr}`)
  }
  watch.calls = null
  found.push(...describeOutput(home, calls), ...describeDatabase(home))
  if (mail.open() > 0) found.push(`${mail.open()} connections are open`)
  return found
}

/** What is wrong with the output of a run that says that it is finished. */
function describeOutput(home: string, { failed }: Calls): string[] {
  if (!existsSync(join(home, 'out.csv'))) return ['there is no output']
  const rows = rowsIn(join(home, 'out.csv'))
  if (`${rows.map(({ email }) => email)}` !== `${TEXTS}`) return ['the output has other rows']
  const partial = readdirSync(home).filter(name => name.endsWith('.partial'))
  const mayBeUnknown = failed !== null && !/^(statement|commit|file)/.test(failed)
  return [
    ...describeWrongRows(
      rows.map(row => row.ev_reason),
      mayBeUnknown,
    ),
    ...partial.map(name => `${name} is left`),
  ]
}

/** What is wrong with the jobs in the database of a finished list. */
function describeDatabase(home: string): string[] {
  const database = new Sqlite(join(home, 'data/ev.sqlite'), { readonly: true })
  const all = (text: string) => database.prepare(text).all()
  const jobs = all('select state, done, total from job')
  const items = all('select state, count(*) as rows from item group by state')
  const integrity = database.pragma('integrity_check', { simple: true })
  database.close()
  const state = JSON.stringify({ jobs, items, integrity })
  return state === FINISHED ? [] : [`the database has ${state}`]
}

const FINISHED = JSON.stringify({
  jobs: [{ state: 'completed', done: 6, total: 6 }],
  items: [
    { state: 'done', rows: 5 },
    { state: 'same', rows: 1 },
  ],
  integrity: 'ok',
})
