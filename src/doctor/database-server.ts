import type { ConnectionLimit, ServerFacts, ServerInspection } from '../db/postgres/inspect.ts'
import { SECOND } from '../platform/clock.ts'
import { formatDurationInWords } from '../platform/format.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/**
 * Whether a PostgreSQL server can keep what we have; `place` is its URL for people, `connectionsMax` what one process
 * of ours may open.
 */
export function databaseServerFindings(
  look: ServerInspection,
  place: string,
  connectionsMax: number,
): readonly Finding[] {
  if (look.kind === 'unreachable') {
    return [
      fail(
        `the database ${place} cannot be used: ${look.why}`,
        'Look whether the server runs and lets this machine and user in, and correct EV_DATABASE or --database.',
      ),
    ]
  }
  const wrong = [...refusals(look), ...problems(look, connectionsMax)]
  return wrong.length > 0 ? wrong : [ok(wellSaid(look, place))]
}

const VERSION_MIN = 13

function refusals(facts: ServerFacts): Finding[] {
  const major = Math.floor(facts.version / 10_000)
  return [
    major < VERSION_MIN &&
      fail(
        `the server is PostgreSQL ${major}, and ev needs ${VERSION_MIN} or newer`,
        'Bring the server up to date, or name another with --database.',
      ),
    facts.isStandby &&
      fail(
        'the server takes no changes, as it only follows another one',
        'Name the one that it follows with --database.',
      ),
    facts.encoding !== 'UTF8' &&
      fail(
        `the database is in ${facts.encoding}, and ev needs UTF8`,
        "Make another one: create database NAME encoding 'UTF8' template template0; and name that with --database.",
      ),
    facts.isNewer && fail('the database was written by a newer version of ev', 'Use that version.'),
    !facts.canCreateTables &&
      fail(
        'the user may not make tables in the database',
        'Let its owner run: grant create on schema public to that user.',
      ),
    !facts.canCreateQueue &&
      fail(
        'the user may not make the schema ev_boss, which has the tables of the queue, or not use it',
        'Let its owner run: grant create on database NAME to that user. If the schema is there: grant usage on schema ev_boss to it.',
      ),
    facts.closedTables.length > 0 &&
      fail(
        `the user may not read and write tables that are there: ${facts.closedTables.join(', ')}`,
        'Use the user that made them, or let that one grant all on them to this one.',
      ),
  ].filter(finding => finding !== false)
}

/** What waits for a time of day bears more; where it says how late something was, this is seen. */
const CLOCK_OFF_MAX_MS = 5 * SECOND
/** A list of a million rows commits some twenty thousand times. */
const COMMIT_MAX_MS = 50

function problems(facts: ServerFacts, connectionsMax: number): Finding[] {
  const { limit, clockAheadMs, commitMs } = facts
  return [
    limit.max - limit.used < connectionsMax &&
      warn(
        `${usedOf(limit)} are used, and each ev needs up to ${connectionsMax}`,
        `${raise(limit)} Or let each ev have fewer with --database-connections.`,
      ),
    Math.abs(clockAheadMs) > CLOCK_OFF_MAX_MS &&
      warn(
        `our clock is ${formatDurationInWords(Math.abs(clockAheadMs), Math.round)} ${clockAheadMs > 0 ? 'fast' : 'slow'} by that of the database`,
        'Let both machines keep the time: timedatectl set-ntp true, or run chrony.',
      ),
    commitMs > COMMIT_MAX_MS &&
      warn(
        `a commit takes ${Math.round(commitMs)} ms, and lists wait for each`,
        'Look at the disk of the server and the way to it; ev should run near it.',
      ),
  ].filter(finding => finding !== false)
}

const usedOf = ({ of, name, used, max }: ConnectionLimit) =>
  `${used} of ${max} connections of the ${of === 'server' ? of : `${of} ${name}`}`

function raise({ of, name }: ConnectionLimit): string {
  if (of === 'server') return 'Raise max_connections of the server, or lower what others use.'
  return `Raise the limit: alter ${of} "${name}" connection limit N.`
}

function wellSaid({ version, limit, commitMs }: ServerFacts, place: string) {
  const release = `${Math.floor(version / 10_000)}.${version % 10_000}`
  return `PostgreSQL ${release} at ${place}: ${usedOf(limit)} are used, a commit takes ${commitMs.toFixed(1)} ms, and its clock agrees with ours`
}
