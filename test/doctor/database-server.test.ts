import { expect, test } from 'vitest'
import type { ConnectionLimit, ServerFacts } from '../../src/db/postgres/inspect.ts'
import { databaseServerFindings } from '../../src/doctor/database-server.ts'
import { MINUTE, SECOND } from '../../src/platform/clock.ts'

const PLACE = 'postgres://db.example/ev'
const WELL: ServerFacts = {
  version: 180_003,
  isStandby: false,
  canCreateTables: true,
  canCreateQueue: true,
  closedTables: [],
  isNewer: false,
  isPooled: false,
  encoding: 'UTF8',
  clockAheadMs: 40,
  commitMs: 1.23,
  limit: { of: 'server', name: '', used: 12, max: 97 },
}
const limit = (of: ConnectionLimit['of'], used: number): ConnectionLimit => ({
  of,
  name: of === 'server' ? '' : 'ann',
  used,
  max: 97,
})
const findings = (facts: Partial<ServerFacts>) =>
  databaseServerFindings({ kind: 'reached', ...WELL, ...facts }, PLACE, 17)

test('a usable server is one line', () => {
  expect(findings({})).toEqual([
    {
      state: 'ok',
      says: 'PostgreSQL 18.3 at postgres://db.example/ev: 12 of 97 connections of the server are in use, a commit takes 1.2 ms, clocks are in sync',
      todo: null,
    },
  ])
})

test('an unreachable server is a failure with the error', () => {
  const why = 'connect ECONNREFUSED 192.0.2.9:5432'
  const unreachable = { kind: 'unreachable', why, remedy: 'Start it.' } as const
  expect(databaseServerFindings(unreachable, PLACE, 17)).toEqual([
    { state: 'fail', says: `cannot use the database ${PLACE}: ${why}`, todo: 'Start it.' },
  ])
})

test.each([
  [{ version: 120_022 }, 'fail', /PostgreSQL 12; ev requires 13/],
  [{ version: 130_000 }, 'ok', /^PostgreSQL 13\.0 /],
  [{ isStandby: true }, 'fail', /read-only standby/],
  [{ isPooled: true }, 'fail', /^a pooler shares its connections between transactions$/],
  [{ isNewer: true }, 'fail', /newer version of ev/],
  [{ canCreateTables: false }, 'fail', /cannot create tables/],
  [{ canCreateQueue: false }, 'fail', /cannot create or use the schema ev_boss/],
  [{ closedTables: ['item', 'job'] }, 'fail', /cannot read and write .*item, job/],
  [{ encoding: 'LATIN1' }, 'fail', /^the database encoding is LATIN1; ev requires UTF8$/],
  [{ encoding: 'SQL_ASCII' }, 'fail', /is SQL_ASCII/],
  [{ limit: limit('server', 80) }, 'ok', /80 of 97 connections of the server are in use/],
  [
    { limit: limit('server', 81) },
    'warn',
    /81 of 97 connections of the server are in use; each ev process needs up to 17/,
  ],
  [{ limit: limit('role', 90) }, 'warn', /90 of 97 connections of the role ann are in use/],
  [{ limit: limit('database', 90) }, 'warn', /90 of 97 connections of the database ann are in use/],
  [{ clockAheadMs: -5 * SECOND }, 'ok', /in sync/],
  [{ clockAheadMs: 5 * SECOND + 1 }, 'warn', /5 seconds ahead of/],
  [{ clockAheadMs: -9 * MINUTE }, 'warn', /9 minutes behind/],
  [{ commitMs: 50 }, 'ok', /50\.0 ms/],
  [{ commitMs: 51 }, 'warn', /a commit takes 51 ms/],
] as const)('%j: %s', (facts, state, says) => {
  const [finding, ...others] = findings(facts)
  expect(others).toEqual([])
  expect(finding).toMatchObject({ state, says: expect.stringMatching(says) })
  expect(finding?.todo === null).toBe(state === 'ok')
})

test('too few connections: the fix names the limit that applies', () => {
  const todo = (of: ConnectionLimit['of']) => findings({ limit: limit(of, 97) })[0]?.todo
  const less = 'Or lower --database-connections.'
  expect(todo('server')).toBe(
    `Raise max_connections of the server, or close other connections. ${less}`,
  )
  expect(todo('role')).toBe(`Raise the limit: alter role "ann" connection limit N. ${less}`)
  expect(todo('database')).toBe(`Raise the limit: alter database "ann" connection limit N. ${less}`)
})

test('all problems are reported', () => {
  const states = findings({ isStandby: true, commitMs: 80, clockAheadMs: MINUTE })
  expect(states.map(({ state }) => state)).toEqual(['fail', 'warn', 'warn'])
})
