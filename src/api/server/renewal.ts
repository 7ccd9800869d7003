import { type Clock, DAY, SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { type Certificate, type CertificateFiles, readCertificate } from './certificate.ts'

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
