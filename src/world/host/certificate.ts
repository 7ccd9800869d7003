import { type Certified, certifySelf } from '../../base/certificate.ts'
import { DAY, systemClock } from '../../base/clock.ts'
import { systemRandom } from '../../base/random.ts'

/**
 * A fresh key and a self-signed certificate for `name`, as most mail servers have one: made here, so that no private
 * key need be kept in the repository.
 */
export const selfSigned = (name: string, expiresAt = systemClock.now() + 365 * DAY): Certified =>
  certifySelf({
    names: [name],
    notBefore: expiresAt - 366 * DAY,
    notAfter: expiresAt,
    random: systemRandom,
  })
