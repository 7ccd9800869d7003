/**
 * Parses a URL as the class `URL` does, which also reads `https:example.com` and
 * `https:/example.com`: here, they are not URLs. Returns null for a text that is not a URL.
 */
export const parseUrl = (text: string): URL | null =>
  !/^https?:(?!\/\/[^/\\])/i.test(text) && URL.canParse(text) ? new URL(text) : null
