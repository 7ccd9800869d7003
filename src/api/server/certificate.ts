import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { type Clock, DAY, SECOND } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { API_LOG } from '../telemetry.ts'

/** Paths of the certificate with its chain and of the private key. */
export type CertificateFiles = { readonly cert: string; readonly key: string }

/** A certificate that passed validation, as PEM. */
export type Certificate = {
  readonly cert: string
  readonly key: string
  /** End of validity, epoch ms. */
  readonly expiresAt: number
}

/** Reads and validates a certificate. Throws EvError('bad_config') with the reason. */
export function readCertificate(files: CertificateFiles): Certificate {
  const cert = readText(files.cert, 'certificate')
  const key = readText(files.key, 'private key')
  const certificate = parseOrThrow(
    () => new X509Certificate(cert),
    `${files.cert} contains no certificate in PEM format`,
    'It must start with "-----BEGIN CERTIFICATE-----": the certificate of the host first, then its chain.',
  )
  const privateKey = parseOrThrow(
    () => createPrivateKey(key),
    `${files.key} contains no readable private key`,
    'It must start with "-----BEGIN PRIVATE KEY-----" and must not be protected by a password.',
  )
  checkKeyMatches(files, certificate, privateKey)
  parseOrThrow(
    () => createSecureContext({ cert, key }),
    `The certificate ${files.cert} cannot be used`,
    'Reissue it with a longer key and its complete chain.',
  )
  return { cert, key, expiresAt: Date.parse(certificate.validTo) }
}

function readText(file: string, label: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new EvError(
      'bad_config',
      `The ${label} ${file} cannot be read: ${errorMessage(cause)}. Check its path and permissions.`,
      { cause },
    )
  }
}

function parseOrThrow<T>(parse: () => T, problem: string, remedy: string): T {
  try {
    return parse()
  } catch (cause) {
    throw new EvError('bad_config', `${problem}: ${errorMessage(cause)}. ${remedy}`, { cause })
  }
}

function checkKeyMatches(files: CertificateFiles, cert: X509Certificate, key: KeyObject): void {
  if (cert.checkPrivateKey(key)) return
  throw new EvError(
    'bad_config',
    `The key ${files.key} does not match the certificate ${files.cert}. Use two files that belong together.`,
  )
}

/** Each check reads a few kilobytes; a renewed certificate is not urgent. */
const POLL_INTERVAL_MS = 5 * SECOND
/** Automatic renewal happens weeks before this. */
const WARN_BEFORE_MS = 7 * DAY

export type Renewal = {
  /** Checks the files now, in addition to the interval. */
  checkNow(): void
  stop(): void
}

/**
 * Polls the files of a certificate and passes on a changed one. An invalid certificate is logged
 * once, and the current one stays in use: the second file may not be written yet.
 */
export function watchCertificate(
  files: CertificateFiles,
  first: Certificate,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  onNew: (certificate: Certificate) => void,
): Renewal {
  let current = first
  let lastError = ''
  const checkNow = () => {
    try {
      const found = readCertificate(files)
      lastError = ''
      if (found.cert === current.cert && found.key === current.key) return
      onNew(found)
      current = found
      writeLog(log, API_LOG.certificateReloaded, { file: files.cert })
      warnOfExpiry(files, found, clock, log)
    } catch (error) {
      const why = errorMessage(error)
      if (why !== lastError) writeLog(log, API_LOG.certificateNotReloaded, {}, why)
      lastError = why
    }
  }
  const loop = startLoop({
    failed: API_LOG.certificateCheckFailed,
    run: checkNow,
    clock,
    log,
    everyMs: POLL_INTERVAL_MS,
    startAfterMs: POLL_INTERVAL_MS,
  })
  warnOfExpiry(files, first, clock, log)
  return { checkNow, stop: () => void loop.stop() }
}

function warnOfExpiry(files: CertificateFiles, { expiresAt }: Certificate, clock: Clock, log: Log) {
  const leftMs = expiresAt - clock.now()
  if (leftMs > WARN_BEFORE_MS) return
  const until = new Date(expiresAt).toISOString()
  const event = leftMs <= 0 ? API_LOG.certificateExpired : API_LOG.certificateExpiresSoon
  writeLog(log, event, { file: files.cert, until })
}
