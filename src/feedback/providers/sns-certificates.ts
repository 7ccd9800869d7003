import { type KeyObject, X509Certificate } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { errorMessage } from '../../platform/error.ts'
import { OperationError } from '../../platform/operation-error.ts'
import { reject } from './checks.ts'

export type CertificateDeps = {
  /** Epoch ms. */
  readonly now: number
  /** Gets a document over HTTPS: null if the server refuses. Throws EvError if it fails. */
  readonly getDocument: (url: string) => Promise<string | null>
}

/** Certificates in memory: Amazon renews that of a region about once a year. */
const CERTIFICATES_MAX = 16
/** Downloads in flight, so that forged requests cannot open any number of connections. */
const DOWNLOADS_MAX = 4

/** The certificates of Amazon SNS, downloaded once per process. */
export class SnsCertificates {
  readonly #certificates = new LRUCache<string, Promise<X509Certificate>>({ max: CERTIFICATES_MAX })
  #downloads = 0

  /** Returns the public key of the certificate at a checked URL. */
  async getKey(url: string, deps: CertificateDeps): Promise<KeyObject> {
    const { validFrom, validTo, publicKey } = await this.#get(url, deps)
    const isValid = Date.parse(validFrom) <= deps.now && deps.now <= Date.parse(validTo)
    if (!isValid) reject('authentication', 'The certificate of Amazon SNS has expired.')
    return publicKey
  }

  #get(url: string, deps: CertificateDeps): Promise<X509Certificate> {
    const cached = this.#certificates.get(url)
    if (cached !== undefined) return cached
    const certificate = this.#download(url, deps)
    this.#certificates.set(url, certificate)
    certificate.catch(() => this.#certificates.delete(url))
    return certificate
  }

  async #download(url: string, { getDocument }: CertificateDeps): Promise<X509Certificate> {
    if (this.#downloads >= DOWNLOADS_MAX)
      reject('unavailable', 'Too many certificates of Amazon SNS are being downloaded.')
    this.#downloads++
    try {
      return parseCertificate(await getDocument(url))
    } catch (error) {
      if (error instanceof OperationError) throw error
      const why = errorMessage(error)
      return reject('unavailable', `The certificate of Amazon SNS cannot be downloaded: ${why}`)
    } finally {
      this.#downloads--
    }
  }
}

function parseCertificate(pem: string | null): X509Certificate {
  try {
    if (pem !== null) return new X509Certificate(pem)
  } catch {
    // It is not a certificate.
  }
  return reject('authentication', 'There is no certificate at SigningCertURL.')
}
