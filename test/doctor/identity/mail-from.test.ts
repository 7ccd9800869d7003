import { describe, expect, test } from 'vitest'
import { mailFrom } from '../../../src/doctor/identity/sender-policy.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

const SIGNAL = new AbortController().signal
const IP = '192.0.2.9'
type Names = Readonly<Record<string, ZoneEntry>>

describe('the sender', () => {
  const sender = (address: string, names: Names) => mailFrom(zone(names), address, SIGNAL)

  test.each<[string, Names, 'ok' | 'warn' | 'fail']>([
    ['has an exchanger', { 'a.test': { MX: [[10, 'mx.a.test']] } }, 'ok'],
    ['accepts mail itself', { 'a.test': { A: [IP] } }, 'ok'],
    ['accepts no mail', { 'a.test': { MX: [[0, '']] } }, 'fail'],
    ['has no mail server', { 'a.test': {} }, 'fail'],
    ['does not exist', {}, 'fail'],
    ['cannot be looked up', { 'a.test': 'server' }, 'warn'],
  ])('whose domain %s', async (_, names, state) => {
    const finding = await sender('probe@a.test', names)
    expect(finding.state).toBe(state)
    expect(finding.todo === null).toBe(state === 'ok')
  })

  test('may be the null sender, with a recommendation', async () => {
    expect(await sender('', {})).toMatchObject({
      state: 'ok',
      says: expect.stringContaining('--mail-from'),
    })
  })
})
