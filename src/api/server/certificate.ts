import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { type Clock, DAY, SECOND } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'

/** The files of a certificate with its chain, and of its private key. */
export type CertificateFiles = { readonly cert: string; readonly key: string }

/** A certificate that can be used, as PEM. */
export type Certificate = {
  readonly cert: string
  readonly key: string
  /** Epoch ms. */
  readonly expiresAt: number
}

/** Reads a certificate and looks whether it can be used. Throws EvError('bad_config') with what is wrong. */
export function readCertificate(files: CertificateFiles): Certificate {
  const cert = textOf(files.cert, 'certificate')
  const key = textOf(files.key, 'private key')
  const certificate = parsed(
    () => new X509Certificate(cert),
    `${files.cert} holds no certificate in PEM form`,
    'It begins with “-----BEGIN CERTIFICATE-----”, the certificate of the host first, then its chain.',
  )
  const privateKey = parsed(
    () => createPrivateKey(key),
    `${files.key} holds no private key that can be read`,
    'It begins with “-----BEGIN PRIVATE KEY-----” and is not protected by a password.',
  )
  refuseStranger(files, certificate, privateKey)
  parsed(
    () => createSecureContext({ cert, key }),
    `The certificate ${files.cert} cannot be used`,
    'Have it issued anew, with a key that is long enough and with its whole chain.',
  )
  return { cert, key, expiresAt: Date.parse(certificate.validTo) }
}

function textOf(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new EvError(
      'bad_config',
      `The ${what} ${file} cannot be read: ${errorMessage(cause)}. Correct its name or its rights.`,
      { cause },
    )
  }
}

function parsed<T>(parse: () => T, fault: string, remedy: string): T {
  try {
    return parse()
  } catch (cause) {
    throw new EvError('bad_config', `${fault}: ${errorMessage(cause)}. ${remedy}`, { cause })
  }
}

function refuseStranger(files: CertificateFiles, cert: X509Certificate, key: KeyObject): void {
  if (cert.checkPrivateKey(key)) return
  throw new EvError(
    'bad_config',
    `The key ${files.key} is not that of the certificate ${files.cert}. Name the two files that belong together.`,
  )
}

/** Reads a few kilobytes each time; a renewed certificate is not urgent. */
const POLL_INTERVAL_MS = 5 * SECOND
/** Whoever renews certificates by machine does so weeks before. */
const WARN_BEFORE_MS = 7 * DAY

export type Renewal = {
  /** Looks now; otherwise it looks every few seconds. */
  look(): void
  stop(): void
}

/**
 * Reads the files of a certificate again and again, and hands over what is new in them. What is bad is said once,
 * and what was before stays: somebody may be about to write the second file.
 */
export function watchCertificate(
  files: CertificateFiles,
  first: Certificate,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  onNew: (certificate: Certificate) => void,
): Renewal {
  let current = first
  let said = ''
  const look = () => {
    try {
      const found = readCertificate(files)
      said = ''
      if (found.cert === current.cert && found.key === current.key) return
      onNew(found)
      current = found
      log.info('the certificate was read again', { file: files.cert })
      warnOfExpiry(files, found, clock, log)
    } catch (error) {
      const why = errorMessage(error)
      if (why !== said) log.error(`the certificate stays as it was. ${why}`)
      said = why
    }
  }
  const loop = startLoop({
    ...{ name: 'the check of the certificate', run: look, clock, log },
    ...{ everyMs: POLL_INTERVAL_MS, startAfterMs: POLL_INTERVAL_MS },
  })
  warnOfExpiry(files, first, clock, log)
  return { look, stop: () => void loop.stop() }
}

function warnOfExpiry(files: CertificateFiles, { expiresAt }: Certificate, clock: Clock, log: Log) {
  const leftMs = expiresAt - clock.now()
  if (leftMs > WARN_BEFORE_MS) return
  const until = new Date(expiresAt).toISOString()
  const fields = { file: files.cert, until }
  if (leftMs <= 0) log.warn('the certificate has expired: clients will refuse it', fields)
  else log.warn('the certificate expires soon', fields)
}
