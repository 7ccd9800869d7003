import { describe, expect, test } from 'vitest'
import { heloName } from '../../../src/doctor/identity/reverse-name.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

const SIGNAL = new AbortController().signal
const IP = '192.0.2.9'
type Names = Readonly<Record<string, ZoneEntry>>

describe('the HELO name', () => {
  const helo = (name: string, ours: readonly string[] = [IP], names: Names = {}) =>
    heloName(zone({ 'probe.example.com': { A: [IP] }, ...names }), name, ours, SIGNAL)

  test('passes if it resolves to the address', async () => {
    expect(await helo('probe.example.com')).toMatchObject({ state: 'ok', todo: null })
  })

  test.each<[string, string, readonly string[], Names, 'ok' | 'warn' | 'fail']>([
    ['is not fully qualified', 'vm', [IP], {}, 'fail'],
    ['is an address literal', '[192.0.2.9]', [IP], {}, 'warn'],
    ['does not exist', 'gone.example.com', [IP], {}, 'fail'],
    ['has no address', 'bare.example.com', [IP], { 'bare.example.com': {} }, 'fail'],
    ['cannot be looked up', 'slow.example.com', [IP], { 'slow.example.com': 'timeout' }, 'warn'],
    ['resolves elsewhere', 'probe.example.com', ['192.0.2.10'], {}, 'warn'],
    ['resolves to one of two addresses', 'probe.example.com', [IP, '2001:db8::1'], {}, 'warn'],
    ['resolves, and the public address is unknown', 'probe.example.com', [], {}, 'ok'],
  ])('%s', async (_, name, ours, names, state) => {
    const finding = await helo(name, ours, names)
    expect(finding.state).toBe(state)
    expect(finding.todo === null).toBe(state === 'ok')
  })
})
