import { describe, expect, test } from 'vitest'
import { ipv6Finding } from '../../../src/doctor/network/public-ip.ts'
import type { Outcome } from '../../../src/doctor/network/smtp-handshake.ts'
import { greeted, unreached, visited } from './visits.ts'

const find = (...outcomes: Outcome[]) =>
  ipv6Finding([
    visited('four.test', unreached('ETIMEDOUT')),
    ...outcomes.map(outcome => visited('six.test', outcome, { ip: '2001:db8::25' })),
  ])

describe('IPv6', () => {
  test('is omitted if no server has it or may be dialed over it', () => {
    expect(find()).toBeNull()
    expect(find({ kind: 'not-public' })).toBeNull()
  })

  test('passes if a server responds over it, and if there is no route', () => {
    expect(find(greeted(), unreached('ETIMEDOUT'))).toMatchObject({ state: 'ok' })
    expect(find(unreached('ENETUNREACH'), unreached('EADDRNOTAVAIL'))).toMatchObject({
      state: 'ok',
      says: expect.stringContaining('only IPv4'),
    })
  })

  test('is a warning if there is a route but no response', () => {
    expect(find(unreached('ENETUNREACH'), unreached('ETIMEDOUT'))).toMatchObject({ state: 'warn' })
  })
})
