import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { DAY } from '../../../src/platform/clock.ts'
import { systemRandom as random } from '../../../src/platform/random.ts'
import { issue } from '../../../src/simulator/smtp-host/host.ts'
import { certify, makeAuthority } from '../../support/certificate.ts'
import { countedRandom } from '../../support/random.ts'

const NOW = Date.UTC(2026, 5, 1, 12)
const authority = makeAuthority({ name: 'Authority of Ann', now: NOW, days: 10, random })
const plan = {
  names: ['hook.example', '*.hook.example', '127.0.0.1', '::1'],
  notBefore: NOW,
  notAfter: NOW + 5 * DAY,
  random,
}
const made = certify(authority, plan)
const issuer = new X509Certificate(authority.cert)
const certificate = new X509Certificate(made.cert)

describe('an authority', () => {
  test('can sign others, and is self-signed', () => {
    expect(issuer.ca).toBe(true)
    expect(issuer.subject).toBe('CN=Authority of Ann')
    expect(issuer.verify(issuer.publicKey)).toBe(true)
  })

  test('is valid for some days, from the day before', () => {
    expect(Date.parse(issuer.validTo)).toBe(NOW + 10 * DAY)
    expect(Date.parse(issuer.validFrom)).toBe(NOW - DAY)
  })
})

describe('a certificate', () => {
  test('is signed by its authority, and can sign nothing', () => {
    expect(certificate.checkIssued(issuer)).toBe(true)
    expect(certificate.verify(issuer.publicKey)).toBe(true)
    expect(certificate.issuer).toBe('CN=Authority of Ann')
    expect(certificate.ca).toBe(false)
  })

  test('is for its names and addresses only', () => {
    expect(certificate.checkHost('hook.example')).toBe('hook.example')
    expect(certificate.checkHost('a.hook.example')).toBe('*.hook.example')
    expect(certificate.checkHost('other.example')).toBeUndefined()
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1')
    expect(certificate.checkIP('::1')).toBeTruthy()
    expect(certificate.checkIP('127.0.0.2')).toBeUndefined()
    expect(certificate.subject).toBe('CN=hook.example')
  })

  test('is valid for the requested time', () => {
    expect(Date.parse(certificate.validFrom)).toBe(NOW)
    expect(Date.parse(certificate.validTo)).toBe(NOW + 5 * DAY)
  })

  test('matches its key', () => {
    expect(certificate.checkPrivateKey(createPrivateKey(made.key))).toBe(true)
    expect(() => createSecureContext({ key: made.key, cert: made.cert })).not.toThrow()
  })

  test('has a unique positive serial number', () => {
    const numbered = certify(authority, { ...plan, random: countedRandom() })
    expect(new X509Certificate(numbered.cert).serialNumber).toBe('40123456789ABCDEF0123456789ABCDE')
    expect(certificate.serialNumber).not.toBe(issuer.serialNumber)
  })

  test('that is self-signed has no other authority', () => {
    const own = new X509Certificate(issue(plan).cert)
    expect(own.verify(own.publicKey)).toBe(true)
    expect(own.verify(issuer.publicKey)).toBe(false)
    expect(own.issuer).toBe('CN=hook.example')
  })
})
