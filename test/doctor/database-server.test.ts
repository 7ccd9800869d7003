import { expect, test } from 'vitest'
import type { ConnectionLimit, ServerFacts } from '../../src/db/postgres/inspect.ts'
import { databaseServerFindings } from '../../src/doctor/database-server.ts'
import { MINUTE, SECOND } from '../../src/platform/clock.ts'

const PLACE = 'postgres://db.example/ev'
const WELL: ServerFacts = {
  ...{
    version: 180_003,
    isStandby: false,
    canCreateTables: true,
    canCreateQueue: true,
    closedTables: [],
    isNewer: false,
  },
  ...{ encoding: 'UTF8', clockAheadMs: 40, commitMs: 1.23 },
  limit: { of: 'server', name: '', used: 12, max: 97 },
}
const limit = (of: ConnectionLimit['of'], used: number): ConnectionLimit => ({
  ...{ of, name: of === 'server' ? '' : 'ann', used, max: 97 },
})
const findings = (facts: Partial<ServerFacts>) =>
  databaseServerFindings({ kind: 'reached', ...WELL, ...facts }, PLACE, 17)

test('a server that is well is told in one line', () => {
  expect(findings({})).toEqual([
    {
      state: 'ok',
      says: 'PostgreSQL 18.3 at postgres://db.example/ev: 12 of 97 connections of the server are used, a commit takes 1.2 ms, and its clock agrees with ours',
      todo: null,
    },
  ])
})

test('one that cannot be had is a failure, with what it said', () => {
  const why = 'connect ECONNREFUSED 192.0.2.9:5432'
  expect(databaseServerFindings({ kind: 'unreachable', why }, PLACE, 17)).toMatchObject([
    { state: 'fail', says: `the database ${PLACE} cannot be used: ${why}` },
  ])
})

test.each([
  [{ version: 120_022 }, 'fail', /PostgreSQL 12, and ev needs 13/],
  [{ version: 130_000 }, 'ok', /^PostgreSQL 13\.0 /],
  [{ isStandby: true }, 'fail', /takes no changes/],
  [{ isNewer: true }, 'fail', /newer version of ev/],
  [{ canCreateTables: false }, 'fail', /may not make tables/],
  [{ canCreateQueue: false }, 'fail', /may not make the schema ev_boss/],
  [{ closedTables: ['item', 'job'] }, 'fail', /may not read and write .*item, job/],
  [{ encoding: 'LATIN1' }, 'fail', /^the database is in LATIN1, and ev needs UTF8$/],
  [{ encoding: 'SQL_ASCII' }, 'fail', /in SQL_ASCII/],
  [{ limit: limit('server', 80) }, 'ok', /80 of 97 connections of the server are used/],
  [
    { limit: limit('server', 81) },
    'warn',
    /81 of 97 connections of the server are used, and each ev needs up to 17/,
  ],
  [{ limit: limit('role', 90) }, 'warn', /90 of 97 connections of the role ann are used/],
  [{ limit: limit('database', 90) }, 'warn', /90 of 97 connections of the database ann are used/],
  [{ clockAheadMs: -5 * SECOND }, 'ok', /agrees/],
  [{ clockAheadMs: 5 * SECOND + 1 }, 'warn', /5 seconds fast/],
  [{ clockAheadMs: -9 * MINUTE }, 'warn', /9 minutes slow/],
  [{ commitMs: 50 }, 'ok', /50\.0 ms/],
  [{ commitMs: 51 }, 'warn', /a commit takes 51 ms/],
] as const)('%j: %s', (facts, state, says) => {
  const [finding, ...others] = findings(facts)
  expect(others).toEqual([])
  expect(finding).toMatchObject({ state, says: expect.stringMatching(says) })
  expect(finding?.todo === null).toBe(state === 'ok')
})

test('too few connections: what is to be done is said of the limit that applies', () => {
  const todo = (of: ConnectionLimit['of']) => findings({ limit: limit(of, 97) })[0]?.todo
  const less = 'Or let each ev have fewer with --database-connections.'
  expect(todo('server')).toBe(
    `Raise max_connections of the server, or lower what others use. ${less}`,
  )
  expect(todo('role')).toBe(`Raise the limit: alter role "ann" connection limit N. ${less}`)
  expect(todo('database')).toBe(`Raise the limit: alter database "ann" connection limit N. ${less}`)
})

test('all that is wrong is told', () => {
  const states = findings({ isStandby: true, commitMs: 80, clockAheadMs: MINUTE })
  expect(states.map(({ state }) => state)).toEqual(['fail', 'warn', 'warn'])
})
