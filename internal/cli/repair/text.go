package repair

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return orDash(*s)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
