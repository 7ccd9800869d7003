import { describe, expect, test } from 'vitest'
import { senderPolicy } from '../../../src/doctor/identity/sender-policy.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

const SIGNAL = new AbortController().signal
const IP = '192.0.2.9'
type Names = Readonly<Record<string, ZoneEntry>>

describe('SPF of the sender', () => {
  const policy = (record: string | null, mailFrom = 'probe@a.test') => {
    const names: Names = record === null ? {} : { 'a.test': { TXT: [record] } }
    return senderPolicy(zone(names), { ip: IP, helo: 'a.test', mailFrom }, SIGNAL)
  }

  test.each([
    ['v=spf1 ip4:192.0.2.9 -all', 'ok'],
    ['v=spf1 -all', 'fail'],
    ['v=spf1 ~all', 'warn'],
    ['v=spf1 ?all', 'warn'],
    ['v=spf1 ip5:192.0.2.9', 'fail'],
    [null, 'warn'],
  ])('%s: %s', async (record, state) => {
    const finding = await policy(record)
    expect(finding.state).toBe(state)
    expect(finding.todo === null).toBe(state === 'ok')
  })

  test('that does not cover the address shows the record and what to add', async () => {
    expect((await policy('v=spf1 -all')).todo).toBe(
      'Add ip4:192.0.2.9 to the SPF record of a.test, currently "v=spf1 -all".',
    )
  })

  test('uses the HELO name for the null sender, which needs no record', async () => {
    expect((await policy(null, '')).state).toBe('ok')
    expect((await policy('v=spf1 -all', '')).state).toBe('fail')
    expect((await policy('v=spf1 a -all', '')).state).toBe('fail')
  })
})
