import { generateKeyPairSync, sign } from 'node:crypto'
import { DAY, systemClock } from '../../base/clock.ts'

/**
 * A fresh key and a self-signed certificate for `name`, as most mail servers have one: made here
 * (X.509, RFC 5280 §4.1, in DER), so that no private key need be kept in the repository.
 */
export function selfSigned(
  name: string,
  expiresAt = systemClock.now() + 365 * DAY,
): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const who = sequence(set(sequence(oid(COMMON_NAME), utf8String(name))))
  const body = sequence(
    integer(1),
    sequence(oid(ECDSA_WITH_SHA256)),
    who,
    sequence(utcTime(expiresAt - 366 * DAY), utcTime(expiresAt)),
    who,
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = bitString(sign('sha256', body, privateKey))
  const der = sequence(body, sequence(oid(ECDSA_WITH_SHA256)), signature)
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  }
}

/** 1.2.840.10045.4.3.2 */
const ECDSA_WITH_SHA256 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]
/** 2.5.4.3 */
const COMMON_NAME = [0x55, 0x04, 0x03]

function tagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...parts: readonly Uint8Array[]) => tagged(0x30, ...parts)
const set = (...parts: readonly Uint8Array[]) => tagged(0x31, ...parts)
const integer = (small: number) => tagged(0x02, Buffer.from([small]))
const oid = (bytes: readonly number[]) => tagged(0x06, Buffer.from(bytes))
const utf8String = (text: string) => tagged(0x0c, Buffer.from(text, 'utf8'))
const bitString = (bytes: Uint8Array) => tagged(0x03, Buffer.from([0]), bytes)
/** `YYMMDDhhmmssZ` */
const utcTime = (at: number) =>
  tagged(0x17, Buffer.from(`${new Date(at).toISOString().replace(/\D/g, '').slice(2, 14)}Z`))
