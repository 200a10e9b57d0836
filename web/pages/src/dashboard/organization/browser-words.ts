/** "Chrome on Linux": enough for somebody to know their own browser again. */
export function browserWords(userAgent: string | null): string {
  if (!userAgent) return 'A program';
  const browser = ([[/Edg\//, 'Edge'], [/OPR\//, 'Opera'], [/Firefox\//, 'Firefox'], [/Chrom(e|ium)\//, 'Chrome'], [/Safari\//, 'Safari']] as const)
    .find(([pattern]) => pattern.test(userAgent))?.[1];
  const system = ([[/Android/, 'Android'], [/iPhone|iPad/, 'iOS'], [/Windows/, 'Windows'], [/Mac OS/, 'macOS'], [/Linux/, 'Linux']] as const)
    .find(([pattern]) => pattern.test(userAgent))?.[1];
  if (!browser) return userAgent.slice(0, 40);
  return system ? `${browser} on ${system}` : browser;
}
