/** Returns a URL without its password, for display. */
export const withoutPassword = (url: string): string =>
  url.replace(/^([a-z0-9+.-]+:\/\/).*@/is, '$1…@').replace(/([?&](?:ssl)?password=)[^&#]*/gi, '$1…')

/** Whether a URL contains a password: before the host, or as a query parameter of PostgreSQL. */
export function hasPassword(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { password, searchParams } = new URL(url)
  return password !== '' || searchParams.has('password') || searchParams.has('sslpassword')
}
