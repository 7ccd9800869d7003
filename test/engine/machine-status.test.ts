import { expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import { readMachineStatus } from '../../src/engine/machine-status.ts'

type Egress = { readonly closedSince: number | null; readonly hasConnected: boolean }
type Check = { readonly made: number; readonly failure: { readonly detail: string } | null }

const UNKNOWN: Egress = { closedSince: null, hasConnected: false }
const OPEN: Egress = { closedSince: null, hasConnected: true }
const CLOSED: Egress = { closedSince: 5, hasConnected: false }

function read(check: Check | null, egresses: Record<string, Egress>, failed: readonly string[]) {
  let started = 0
  const engine = {
    resolverCheck: check && { ...check, startIfDue: () => void started++ },
    egressPool: {
      names: Object.keys(egresses),
      prober: (name: string) => egresses[name],
    },
  } as unknown as Engine
  const status = readMachineStatus(engine, {
    smtpPort: 25,
    findPortFailure: name => (failed.includes(name) ? `${name} is firewalled` : null),
  })
  expect(started).toBe(check === null ? 0 : 1)
  const { state, dns, smtp, problems } = status
  return [state, dns, smtp, ...problems.map(({ detail, since }) => `${detail} ${since}`)]
}

const PASSED: Check = { made: 1, failure: null }
const FAILED: Check = { made: 1, failure: { detail: 'DNS lies' } }
const RUNNING: Check = { made: 0, failure: null }

test.each<[string, Check | null, Record<string, Egress>, string[], string[]]>([
  ['without a check of the DNS', null, { a: UNKNOWN }, [], ['ready', 'ok', 'ok']],
  ['before the first check ends', RUNNING, { a: UNKNOWN }, [], ['checking', 'checking', 'ok']],
  ['after a passed check', PASSED, { a: UNKNOWN }, [], ['ready', 'ok', 'ok']],
  ['after a failed check', FAILED, { a: OPEN }, [], ['failing', 'failing', 'ok', 'DNS lies null']],
  [
    ...(['without a reachable server', PASSED, { a: CLOSED }, []] as const),
    ['failing', 'ok', 'failing', 'no mail server can be reached on port 25 5'],
  ] as never,
  [
    ...([
      'without a reachable server, before the first check ends',
      RUNNING,
      { a: CLOSED },
      [],
    ] as const),
    ['failing', 'checking', 'failing', 'no mail server can be reached on port 25 5'],
  ] as never,
  [
    ...(['with a failed check, which also fails the port', FAILED, { a: UNKNOWN }, ['a']] as const),
    ['failing', 'failing', 'ok', 'DNS lies null'],
  ] as never,
  ['with one egress of two', PASSED, { a: CLOSED, b: UNKNOWN }, [], ['ready', 'ok', 'ok']],
  [
    ...(['with a blocked port', PASSED, { a: UNKNOWN }, ['a']] as const),
    ['failing', 'ok', 'failing', 'a is firewalled null'],
  ] as never,
  ['with a port that was blocked', PASSED, { a: OPEN }, ['a'], ['ready', 'ok', 'ok']],
  [
    ...(['with a closed and a blocked egress', PASSED, { a: CLOSED, b: UNKNOWN }, ['b']] as const),
    ['failing', 'ok', 'failing', 'no mail server can be reached on port 25 5'],
  ] as never,
])('the status %s', (_, check, egresses, failed, expected) => {
  expect(read(check, egresses, failed)).toEqual(expected)
})
