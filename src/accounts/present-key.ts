import { isoTime } from '../platform/format.ts'
import { isPublishable } from './key-rights.ts'
import type { ApiKey } from './key-store.ts'

/**
 * Presents a key for the API and the command line. `text` is its secret, which is only included
 * after creation and rotation.
 */
export const presentKey = (key: ApiKey, text?: string) => ({
  id: key.id,
  name: key.name,
  prefix: key.prefix,
  ...(text !== undefined && { key: text }),
  hint: key.hint,
  publishable: isPublishable(key),
  test: key.isTest,
  scopes: [...key.scopes],
  allowed_ips: [...key.allowedIps],
  allowed_domains: [...key.allowedDomains],
  rate_limit_per_minute: key.rateLimitPerMinute,
  created_at: isoTime(key.createdAt),
  expires_at: key.expiresAt === null ? null : isoTime(key.expiresAt),
  last_used_at: key.lastUsedAt === null ? null : isoTime(key.lastUsedAt),
})
