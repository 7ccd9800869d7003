import { X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { DAY } from '../../../../src/base/clock.ts'
import { systemRandom as random } from '../../../../src/base/random.ts'
import { certificateFor, keptAuthority } from '../../../../src/cli/webhooks/listener/authority.ts'
import { emptyFolder } from '../../../support/cli.ts'

const NOW = Date.parse('2026-03-21T10:30:00Z')

let dir = ''
beforeEach(() => {
  dir = join(emptyFolder(), 'not yet there')
})

const at = (now: number) => keptAuthority(dir, { now, random })
const file = (name: string) => join(dir, 'webhook-listen', name)

test('an authority holds for a year, and is made anew when a month is left', () => {
  const first = at(NOW)
  expect(first.isNew).toBe(true)
  expect(Date.parse(new X509Certificate(first.cert).validTo)).toBe(NOW + 365 * DAY)
  expect(at(NOW + 334 * DAY)).toEqual({ ...first, isNew: false })
  const second = at(NOW + 336 * DAY)
  expect(second.isNew).toBe(true)
  expect(second.cert).not.toBe(first.cert)
  expect(readFileSync(second.file, 'utf8')).toBe(second.cert)
})

test('one whose key is another’s, or that is no certificate, is made anew', () => {
  const first = at(NOW)
  const key = readFileSync(file('authority.key'), 'utf8')
  writeFileSync(file('authority.pem'), 'no certificate')
  const second = at(NOW)
  expect(second).toMatchObject({ isNew: true })
  writeFileSync(file('authority.key'), key)
  expect(at(NOW)).toMatchObject({ isNew: true })
  expect(at(NOW)).toMatchObject({ isNew: false })
  expect(first.file).toBe(second.file)
})

test('what cannot be kept is told', () => {
  mkdirSync(file('authority.key'), { recursive: true })
  expect(() => at(NOW)).toThrow(/^The certificates in .*authority\.key cannot be kept: EISDIR/)
})

test('a certificate is for this machine and the address it listens on, for as long as its authority', () => {
  const authority = at(NOW)
  const made = certificateFor(authority, '192.0.2.7', { now: NOW + DAY, random })
  const certificate = new X509Certificate(made.cert)
  expect(certificate.verify(new X509Certificate(authority.cert).publicKey)).toBe(true)
  expect(certificate.checkHost('localhost')).toBe('localhost')
  for (const ip of ['127.0.0.1', '::1', '192.0.2.7']) expect(certificate.checkIP(ip)).toBe(ip)
  expect(certificate.checkIP('192.0.2.8')).toBeUndefined()
  expect(Date.parse(certificate.validTo)).toBe(NOW + 365 * DAY)
})
