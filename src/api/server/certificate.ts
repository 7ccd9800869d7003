import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { EvError, errorMessage } from '../../platform/error.ts'

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
